// A program that makes JSON schemas of the types of graphs, and of the graphs within at these
// namespaces:
// `node types-worker.mjs '{"GRAPH": {"file": ..., "variable": ..., "subgraphs": [...]}}'`.
import path from "node:path";
import schemas from "typescript-json-schema";
import { findSubgraphs } from "./types-subgraphs.mjs";

const { JsonSchemaGenerator, getDefaultArgs, ts } = schemas;

/** What the names of the interface stand for in the types of a graph, below. */
const PARTS = { input_schema: "Input", output_schema: "Output", state_schema: "State", config_schema: "Config", context_schema: "Config" };
/** The types of a graph: of one, of what compiles to one, or of what a function returns. */
const typesOf = (file, variable) => `
import type { BaseMessage as Message } from "@langchain/core/messages";
import type { CompiledStateGraph, StateDefinition, StateGraph, StateType, UpdateType } from "@langchain/langgraph";

type Source = (typeof import(${JSON.stringify(file)}))[${JSON.stringify(variable)}];
type Made<T> = T extends (...args: any[]) => infer R ? Awaited<R> : Awaited<T>;
type Compiled<T> = T extends { compile(...args: any[]): infer C } ? C : T;
type Graph = Compiled<Made<Source>>;
type Builder = Graph extends { builder: infer B } ? B : never;
type IsAny<T> = 0 extends 1 & T ? true : false;
type Known<T> = IsAny<T> extends true ? never : [T] extends [StateDefinition] ? (string extends keyof T ? never : T) : never;

interface BaseMessage {
  type: string;
  content: string | { [key: string]: any }[];
  id?: string;
  name?: string;
  additional_kwargs?: { [key: string]: any };
  response_metadata?: { [key: string]: any };
  tool_calls?: { name: string; args: { [key: string]: any }; id?: string }[];
  tool_call_id?: string;
}

/** A value as JSON has it: messages as their fields, whatever else as deep as forms can show it. */
type Shown<T, Depth extends 0[] = []> = IsAny<T> extends true ? any
  : T extends { __overwrite__: any } ? never
  : T extends Message ? BaseMessage
  : T extends (infer Item)[] ? (IsAny<Item> extends true ? any[] : Extract<Item, Message> extends never ? Shown<Item, Depth>[] : BaseMessage[])
  : T extends (...args: any[]) => any ? never
  : T extends object ? (Depth extends [0, 0, 0, 0] ? any : { [K in keyof T]: Shown<T[K], [0, ...Depth]> })
  : T;

type Inputs = Builder extends { _inputDefinition: infer I } ? Known<I> : never;
type Outputs = Builder extends { _outputDefinition: infer O } ? Known<O> : never;
type Configs = Builder extends { _configSchema?: infer C } ? Known<Exclude<C, undefined>> : never;
type Written = Made<Source> extends StateGraph<any, any, infer U, any, any, any, any> ? U : Graph extends CompiledStateGraph<any, infer U, any, any, any, any> ? U : any;
type Updates = IsAny<Written> extends true ? UpdateType<Outputs> : Written;
export type Input = [Inputs] extends [never] ? never : Shown<UpdateType<Inputs>>;
export type Output = [Outputs] extends [never] ? never : Shown<StateType<Outputs>>;
export type State = [Inputs] extends [never] ? never : Shown<Updates>;
export type Config = [Configs] extends [never] ? never : Shown<UpdateType<Configs>>;
`;

/** The options of a project that say how its files are found and read. */
function optionsOf(file) {
  const own = file ? ts.parseJsonConfigFileContent(ts.readConfigFile(file, ts.sys.readFile).config, ts.sys, path.dirname(file)).options : {};
  const { paths, baseUrl, pathsBasePath, jsx, customConditions, lib } = own;
  return {
    ...Object.fromEntries(Object.entries({ paths, baseUrl, pathsBasePath, jsx, customConditions, lib }).filter(([, value]) => value !== undefined)),
    target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, strict: true, allowJs: true,
    allowImportingTsExtensions: true, noEmit: true, skipLibCheck: true, types: [],
  };
}

/** Each graph is read with the tsconfig.json that is nearest to its file. */
function extractAll(places) {
  const projects = new Map();
  for (const [id, place] of Object.entries(places)) {
    const project = ts.findConfigFile(path.dirname(place.file), ts.sys.fileExists, "tsconfig.json");
    projects.set(project, { ...projects.get(project), [id]: place });
  }
  return Object.assign({}, ...[...projects].map(([project, own]) => extract(own, optionsOf(project))));
}

function extract(places, options) {
  const program = programOf(places, new Map(), options);
  const found = schemasIn(program, places);
  const { places: within, texts } = findSubgraphs(program, places);
  const own = Object.keys(within).length > 0 ? schemasIn(programOf(within, texts, options, program), within) : {};
  for (const [name, { id, ns }] of Object.entries(within)) found[id].subgraphs = { ...found[id].subgraphs, [ns]: own[name] };
  return found;
}

/** Where the types of a graph are written, as a file beside the graph's own. */
const typesFile = ({ file, variable }) => path.join(path.dirname(file), `.slipway-types-${path.basename(file)}-${variable}.ts`);

/** A program of the graphs' types. texts is what some files have at their end in addition. */
function programOf(places, texts, options, oldProgram) {
  const host = ts.createCompilerHost(options);
  const made = new Map(Object.values(places).map((place) => [typesFile(place), typesOf(place.file, place.variable)]));
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => made.has(name) || fileExists(name);
  host.readFile = (name) => made.get(name) ?? readFile(name);
  host.getSourceFile = (name, version, ...rest) => {
    const text = made.get(name) ?? (texts.has(name) ? readFile(name) + texts.get(name) : undefined);
    return text === undefined ? oldProgram?.getSourceFile(name) ?? getSourceFile(name, version, ...rest) : ts.createSourceFile(name, text, version);
  };
  return ts.createProgram({ rootNames: [...made.keys()], options, host });
}

function schemasIn(program, places) {
  const checker = program.getTypeChecker();
  return Object.fromEntries(Object.entries(places).map(([name, place]) => [name, schemasOf(checker, program.getSourceFile(typesFile(place)), place.id ?? name)]));
}

/** A schema that the generator refuses to make is left out, so that all others are there. */
function schemasOf(checker, source, graph) {
  const types = {};
  for (const symbol of checker.getExportsOfModule(checker.getSymbolAtLocation(source))) types[symbol.name] = checker.getDeclaredTypeOfSymbol(symbol);
  const found = {};
  for (const [part, name] of Object.entries(PARTS)) {
    if (types[name].flags & (ts.TypeFlags.Never | ts.TypeFlags.Any)) continue;
    const generator = new JsonSchemaGenerator([], types, {}, {}, checker, { ...getDefaultArgs(), required: true, ignoreErrors: true });
    try {
      found[part] = generator.getSchemaForSymbol(name);
    } catch (error) {
      console.error(`the ${part} of "${graph}" cannot be made of its type: ${error.message}`);
    }
  }
  return found;
}

process.stdout.write(JSON.stringify(extractAll(JSON.parse(process.argv[2]))));
