// Where the source of a graph names the graphs within: `addNode("NAME", GRAPH)`.
import schemas from "typescript-json-schema";

const { ts } = schemas;

/** The methods of a builder that add nodes. */
const ADDING = new Set(["addNode", "addSequence"]);
/** The name of an export that is added to a file. It has the type of a graph within. */
const CAPTURED = "__slipwayGraph";

/**
 * Finds the graphs within by their namespaces.
 * @param {ts.Program} program
 * @param {Record<string, {file: string, variable: string, subgraphs: string[]}>} places
 * @returns {{places: Record<string, {id: string, ns: string, file: string, variable: string}>, texts: Map<string, string>}}
 * where their types
 *   are, and the text that has to be added to the files so that they are there
 */
export function findSubgraphs(program, places) {
  const finder = new Finder(program.getTypeChecker());
  const found = {}, texts = new Map();
  for (const [id, { file, variable, subgraphs }] of Object.entries(places)) {
    for (const ns of subgraphs) {
      const inner = finder.inner(program.getSourceFile(file), variable, ns.split("|"));
      const own = `${CAPTURED}${Object.keys(found).length}`;
      const text = inner && captured(inner, own);
      if (!text) continue;
      const { fileName } = inner.getSourceFile();
      texts.set(fileName, `${texts.get(fileName) ?? ""}\n${text}`);
      found[own] = { id, ns, file: fileName, variable: own };
    }
  }
  return { places: found, texts };
}

class Finder {
  constructor(checker) {
    this.checker = checker;
  }

  /** The expression that gives the graph at these nodes, one within the other. */
  inner(source, variable, nodes) {
    const module = source && this.checker.getSymbolAtLocation(source);
    const exported = module && this.checker.getExportsOfModule(module).find(({ name }) => name === variable);
    let builders = exported ? this.buildersOfSymbol(exported, new Set()) : [];
    let expression;
    for (const node of nodes) {
      expression = this.nodesOf(builders).get(node);
      builders = this.buildersOf(expression, new Set());
    }
    return expression;
  }

  /** The expressions `new StateGraph(...)` of which an expression may make its graph. */
  buildersOf(expression, seen) {
    if (!expression || seen.has(expression)) return [];
    seen.add(expression);
    if (ts.isNewExpression(expression)) return [expression];
    if (ts.isIdentifier(expression)) return this.buildersOfSymbol(this.checker.getSymbolAtLocation(expression), seen);
    if (ts.isFunctionLike(expression)) return this.buildersOfFunction(expression, seen);
    if (ts.isCallExpression(expression)) {
      const { expression: callee } = expression;
      return this.buildersOf(ts.isPropertyAccessExpression(callee) ? callee.expression : callee, seen);
    }
    const wraps = ts.isParenthesizedExpression(expression) || ts.isAwaitExpression(expression) || ts.isAsExpression(expression)
      || ts.isSatisfiesExpression(expression) || ts.isNonNullExpression(expression);
    return wraps ? this.buildersOf(expression.expression, seen) : [];
  }

  buildersOfSymbol(symbol, seen) {
    const target = symbol && symbol.flags & ts.SymbolFlags.Alias ? this.checker.getAliasedSymbol(symbol) : symbol;
    return (target?.declarations ?? []).flatMap((declaration) => this.buildersOf(
      ts.isVariableDeclaration(declaration) ? declaration.initializer : ts.isExportAssignment(declaration) ? declaration.expression : declaration, seen));
  }

  buildersOfFunction({ body }, seen) {
    if (!body) return [];
    return (ts.isBlock(body) ? returnsOf(body).map(({ expression }) => expression) : [body]).flatMap((expression) => this.buildersOf(expression, seen));
  }

  /** The nodes that are added to builders in their own files, by name. */
  nodesOf(builders) {
    const nodes = new Map();
    for (const source of new Set(builders.map((builder) => builder.getSourceFile()))) {
      visit(source, (call) => {
        if (!ts.isCallExpression(call) || !ts.isPropertyAccessExpression(call.expression) || !ADDING.has(call.expression.name.text)) return;
        if (!this.buildersOf(call.expression.expression, new Set()).some((builder) => builders.includes(builder))) return;
        for (const [name, expression] of this.nodesIn(call.arguments)) nodes.set(name, expression);
      });
    }
    return nodes;
  }

  /** The forms of the arguments: a name and a node, an object of nodes, a list of pairs. */
  nodesIn([first, second]) {
    if (!first) return [];
    if (ts.isObjectLiteralExpression(first)) {
      return first.properties.flatMap((property) => (ts.isPropertyAssignment(property) ? [[property.name.text, property.initializer]]
        : ts.isShorthandPropertyAssignment(property) ? [[property.name.text, property.name]] : []));
    }
    if (ts.isArrayLiteralExpression(first)) {
      return first.elements.flatMap((pair) => (ts.isArrayLiteralExpression(pair) && pair.elements.length > 1 ? this.nodesIn(pair.elements) : []));
    }
    const name = this.checker.getTypeAtLocation(first);
    return second && name.isStringLiteral() ? [[name.value, second]] : [];
  }
}

/**
 * The code of an export with the type of an expression; of an expression in a function, as what a
 * copy of the function returns.
 */
function captured(expression, name) {
  const text = expression.getText();
  const around = ts.findAncestor(expression.parent, ts.isFunctionLike);
  if (!around) return `export const ${name} = (${text});`;
  if (!around.body || ts.findAncestor(around.parent, ts.isFunctionLike)) return undefined; // no export can reach it
  const signature = `export async function ${name}(${around.parameters.map((parameter) => parameter.getText()).join(", ")})`;
  if (!ts.isBlock(around.body)) return `${signature} { return (${text}); }`;
  let body = "", from = around.body.getStart() + 1;
  const source = around.getSourceFile().text;
  for (const { pos, end } of returnsOf(around.body)) {
    body += `${source.slice(from, pos)};`;
    from = end;
  }
  return `${signature} { ${body}${source.slice(from, around.body.end - 1)}; return (${text}); }`;
}

/** The returns of a function, without those of functions within. */
function returnsOf(body) {
  const returns = [];
  visit(body, (node) => {
    if (ts.isReturnStatement(node)) returns.push(node);
    return ts.isFunctionLike(node);
  });
  return returns;
}

/** Visits a node and all that is within, except within those for which it is told true. */
function visit(node, seen) {
  if (seen(node)) return;
  ts.forEachChild(node, (child) => visit(child, seen));
}
