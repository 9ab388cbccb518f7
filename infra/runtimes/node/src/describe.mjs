import { drawingOf, subgraphsOf } from "./early.mjs";
import { UserError } from "./errors.mjs";
import { schemasOfTypes } from "./types.mjs";

/** To how many levels graphs within are drawn. */
const MAX_DEPTH = 10;

/**
 * Describes all graphs: JSON schemas under the names of the agent server's interface, the drawable
 * graph, and the graphs within. What is not known is left out. All graphs keep checkpoints.
 * @param {Map<string, import("./load.mjs").Source>} sources
 * @param {{strict?: boolean, typed?: boolean, config?: object, user?: object}} [options] strict
 * makes a factory that fails without a run's configuration an error; typed has the
 *   compiler make the schemas that do not exist when the program runs; config and user are what
 *   factories are called with
 */
export async function describeAll(sources, { strict = false, typed = false, config = { configurable: {}, metadata: {} }, user = null } = {}) {
  const graphs = {};
  for (const [id, source] of sources) {
    const configured = source.isFactory ? { configured: true } : {};
    try {
      const { graph, framework } = await source.open(config, () => ({ accessContext: "assistants.read", user, store: null, executionRuntime: null }));
      graphs[id] = { ...configured, checkpoints: true, ...schemasOf(graph, framework), ...(await drawn(graph)), ...within(graph, framework) };
    } catch (error) {
      if (strict && (error instanceof UserError || !source.isFactory)) throw error instanceof UserError ? error : new UserError(`graph "${id}": ${error.message}`);
      console.warn(`graph "${id}" cannot be described: ${error?.message ?? error}`);
      graphs[id] = { ...configured, checkpoints: true };
    }
  }
  if (typed) await addTypes(graphs, sources);
  return { graphs };
}

async function addTypes(graphs, sources) {
  const untyped = (graph) => graph.input_schema === undefined;
  const unknown = [...sources.values()].map(({ id, place: { file, variable } }) => {
    const subgraphs = Object.entries(graphs[id].subgraphs ?? {}).filter(([, graph]) => untyped(graph)).map(([ns]) => ns);
    return [id, { file, variable, subgraphs }];
  }).filter(([id, { subgraphs }]) => untyped(graphs[id]) || subgraphs.length > 0);
  if (unknown.length === 0) return;
  const known = await schemasOfTypes(Object.fromEntries(unknown));
  for (const [id, { subgraphs = {}, ...schemas }] of Object.entries(known)) {
    graphs[id] = { ...schemas, ...graphs[id] };
    for (const [ns, own] of Object.entries(subgraphs)) graphs[id].subgraphs[ns] = { ...own, ...graphs[id].subgraphs[ns] };
  }
}

/** The graph as it is drawn, and with the graphs within, level by level. */
async function drawn(graph) {
  const drawings = [await drawingOf(graph, false)];
  try {
    while (drawings.length <= MAX_DEPTH) {
      const deeper = await drawingOf(graph, drawings.length);
      if (JSON.stringify(deeper) === JSON.stringify(drawings.at(-1))) break;
      drawings.push(deeper);
    }
  } catch (error) {
    console.warn(`a graph cannot be drawn with those within: ${error.message}`);
  }
  const [first, ...xray] = drawings;
  return { graph: first, ...(xray.length > 0 ? { xray } : {}) };
}

function within(graph, framework) {
  const subgraphs = {};
  for (const [ns, inner] of subgraphsOf(graph)) subgraphs[ns] = schemasOf(inner, framework);
  return Object.keys(subgraphs).length > 0 ? { subgraphs } : {};
}

/** What stands for the whole state in a graph that has no input of its own. */
const WHOLE_STATE = Symbol.for("langgraph.state.partial");

/**
 * Reads the schema that a part of a graph has from a StateSchema. The framework's own functions
 * take a StateSchema for zod before release 1.4, and the first releases leave messages out.
 */
function stated(part, method) {
  return ({ builder }) => {
    const own = builder?.[`_${part}RuntimeDefinition`];
    const definition = own === WHOLE_STATE ? builder._schemaRuntimeDefinition : own;
    const schema = definition?.[method]?.();
    if (!schema) return undefined;
    const extras = Object.entries(definition.fields ?? {}).flatMap(([name, { jsonSchemaExtra }]) => (jsonSchemaExtra ? [[name, jsonSchemaExtra]] : []));
    return { ...schema, properties: { ...Object.fromEntries(extras), ...schema.properties } };
  };
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
    input_schema: known(stated("input", "getInputJsonSchema")) ?? known(schemas.getInputTypeSchema),
    output_schema: known(stated("output", "getJsonSchema")) ?? known(schemas.getOutputTypeSchema),
    state_schema: known(stated("schema", "getInputJsonSchema")) ?? known(schemas.getUpdateTypeSchema),
    config_schema: config,
    context_schema: config, // graphs have one schema for both
  };
  return Object.fromEntries(Object.entries(all).filter(([, schema]) => schema !== undefined));
}
