import { drawingOf, subgraphsOf } from "./early.mjs";
import { UserError } from "./errors.mjs";

/**
 * Describes all graphs: JSON schemas under the names of the agent server's interface, the drawable graph, and the graphs within. What is not
 * known is left out; JavaScript keeps no types, so only schemas that exist when the program runs are known. All graphs keep checkpoints.
 * @param {Map<string, import("./load.mjs").Source>} sources
 * @param {{strict?: boolean}} [options] strict makes a factory that fails without a run's configuration an error
 */
export async function describeAll(sources, { strict = false } = {}) {
  const graphs = {};
  for (const [id, source] of sources) {
    try {
      const { graph, framework } = await source.open({ configurable: {}, metadata: {} }, () => ({ accessContext: "assistants.read", user: null, store: null, executionRuntime: null }));
      graphs[id] = { checkpoints: true, ...schemasOf(graph, framework), graph: await drawingOf(graph), ...(await within(graph, framework)) };
    } catch (error) {
      if (strict && (error instanceof UserError || !source.isFactory)) throw error instanceof UserError ? error : new UserError(`graph "${id}": ${error.message}`);
      console.warn(`graph "${id}" cannot be described: ${error?.message ?? error}`);
      graphs[id] = { checkpoints: true };
    }
  }
  return { graphs };
}

async function within(graph, framework) {
  const subgraphs = {};
  for await (const [ns, inner] of subgraphsOf(graph)) subgraphs[ns] = schemasOf(inner, framework);
  return Object.keys(subgraphs).length > 0 ? { subgraphs } : {};
}

function schemasOf(graph, { schemas }) {
  if (!schemas) return {};
  const known = (read) => {
    try {
      return read?.(graph) ?? undefined;
    } catch (error) {
      console.warn(`a schema cannot be made: ${error.message}`);
      return undefined;
    }
  };
  const config = known(schemas.getConfigTypeSchema);
  const all = {
    input_schema: known(schemas.getInputTypeSchema),
    output_schema: known(schemas.getOutputTypeSchema),
    state_schema: known(schemas.getUpdateTypeSchema),
    config_schema: config,
    context_schema: config, // graphs have one schema for both
  };
  return Object.fromEntries(Object.entries(all).filter(([, schema]) => schema !== undefined));
}
