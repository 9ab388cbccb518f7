# Checks a framework configuration file and shows it as {problems, remarks, graphs, build, text, start, env}. The input is the file. Arguments: $dir, where the
# file is in the tree; $dotenv, the content of the file that "env" names; $dotenv_state, which is "none", "absent", "wrong" or "read".

def trim: sub("^\\s+"; "") | sub("\\s+$"; "");
def has_nul: explode | any(. == 0);
def valid_name: test("^[A-Za-z_][A-Za-z0-9_]*$");
def quote: tojson;

# Whether the path leaves the tree, by its words alone.
def leaves:
  startswith("/") or
  (reduce (($dir + "/" + .) | split("/")[]) as $part ({depth: 0, out: false};
    if $part == "" or $part == "." then . elif $part == ".." then .depth -= 1 else .depth += 1 end
    | if .depth < 0 then .out = true else . end) | .out);

def graph_problems:
  if .graphs == null then ["graphs: is missing; it must name at least one graph, as {\"agent\": \"path/to/file:variable\"}"]
  elif (.graphs | type) != "object" or (.graphs | length) == 0 then ["graphs: must be an object with at least one graph, as {\"agent\": \"path/to/file:variable\"}"]
  else [.graphs | to_entries[] | .key as $id
    | (if $id == "" then "graphs: the id of a graph must not be empty" else empty end),
      ((if (.value | type) == "object" then .value.path else .value end) as $path
      | if ($path | type) != "string" or ($path | test("^[\\s\\S]+:[^:]+$") | not) then "graphs.\($id): must be \"path/to/file:variable\""
        else ($path | sub(":[^:]+$"; "")) as $file
        | if $file | leaves then "graphs.\($id): the path \($file | quote) leaves the repository" else empty end end)]
  end;

# The argument list of a command; null when there is none that can be used.
def arguments:
  if type == "string" then ["sh", "-c", .]
  elif type == "array" and length > 0 and all(type == "string") then . else null end;

def command_problems($field):
  .[$field] as $value | ($value | arguments) as $args
  | if $args == null then ["\($field): must be a command, as a string or as a list of strings"]
    else [(if ((if ($value | type) == "string" then $value else $args[0] end) | trim) == "" then "\($field): must not be empty" else empty end),
      (if any($args[]; has_nul) then "\($field): must not contain a NUL character" else empty end)] end;

def start_problems:
  . as $config
  | if .start != null then command_problems("start")
    else first(([["node_version", "Node"], ["python_version", "Python"], ["dependencies", "Python"]][] | select($config[.[0]] != null)), null) as $wanted
      | if $wanted then ["start: is missing; the field \($wanted[0]) asks for the \($wanted[1]) runtime, which builds here do not add by themselves, so the command that starts the agent must be given"]
        else ["start: is missing; it must be the command that starts the agent"] end
    end;

# The shell becomes the agent where the text is one simple command, so that the agent gets the signals.
def replace_shell:
  if length == 3 and .[0] == "sh" and .[1] == "-c" then
    (.[2] | trim | split(" ") | first // "") as $first
    | if (.[2] | test("[;&|<>()`\n#]")) or ($first | contains("=")) or $first == "exec" then . else ["sh", "-c", "exec " + .[2]] end
  else . end;

def unquote:
  if startswith("\"") then
    first(capture("^\"(?<v>(?:[^\"\\\\]|\\\\.)*)\"\\s*(?:#.*)?$"), null)
    | if . == null then null else .v | gsub("\\\\(?<c>[n\"\\\\$])"; if .c == "n" then "\n" else .c end) end
  elif startswith("'") then first(capture("^'(?<v>[^']*)'\\s*(?:#.*)?$"), null) | if . == null then null else .v end
  else (index(" #") as $at | if $at then .[:$at] else . end) | trim end;

# {env, wrong}: what the .env file sets, and the numbers of the lines that cannot be read.
def dotenv:
  reduce ($dotenv | split("\n") | to_entries[]) as $line ({env: {}, wrong: []};
    ($line.value | trim) as $text
    | if $text == "" or ($text | startswith("#")) then .
      else ($text | ltrimstr("export ") | index("=")) as $at
        | (if $at == null then null else ($text | ltrimstr("export ") | {name: (.[:$at] | trim), value: (.[$at + 1:] | trim | unquote)}) end) as $set
        | if $set == null or $set.value == null or ($set.name | valid_name | not) then .wrong += [$line.key + 1] else .env[$set.name] = $set.value end
      end);

def variable_problems:
  [to_entries[] | .key as $name | .value
    | if type != "string" then "env.\($name): must be a string"
      elif $name | valid_name | not then "env.\($name): is not a name that an environment variable can have"
      elif $name == "HOST" or ($name | startswith("SLIPWAY_")) then "env.\($name): is set by the platform"
      elif has_nul then "env.\($name): must not contain a NUL character"
      else empty end];

# {env, problems, remarks}
def environment:
  .env as $env
  | if $env == null then {env: {}}
    elif ($env | type) == "object" then {env: $env, problems: ($env | variable_problems)}
    elif ($env | type) != "string" then {problems: ["env: must be an object of strings, or the path of a .env file"]}
    elif $env == "" or ($env | startswith("/")) then {problems: ["env: the path \($env | quote) must be relative"]}
    elif $dotenv_state == "absent" then {env: {}, remarks: ["env: the file \($env) is not in the repository; nothing is set from it"]}
    elif $dotenv_state != "read" then {problems: ["env: the file \($env | quote) cannot be read: it leaves the repository, is no file, or is too large"]}
    else dotenv | {env, problems: ([.wrong[] | "env: line \(.) of \($env) is not NAME=value"] + (.env | variable_problems))} end
  | {env: (.env // {} | del(.PORT)), problems: (.problems // []), remarks: (.remarks // [])};

environment as $environment
| {
    problems: (graph_problems + (if .build == null then [] else command_problems("build") end) + start_problems + $environment.problems),
    remarks: $environment.remarks,
    graphs: (.graphs | if type == "object" then keys else [] end),
    build: (.build | if . == null then null else arguments end),
    text: (.build | if . == null then "" elif type == "string" then . else (arguments // [""])[0] end | quote),
    start: (.start | (arguments // []) | replace_shell),
    env: $environment.env
  }
