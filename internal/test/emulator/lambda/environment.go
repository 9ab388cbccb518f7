package lambda

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// environment returns the whole environment of a function's process: the variables that the
// template declares, and the variables that the platform adds, which cannot be overridden. It
// contains no variable of this process.
func (p *Platform) environment(f Function, runtimeAPI string) []string {
	all := map[string]string{"TZ": ":UTC", "LANG": "en_US.UTF-8", "PATH": "/usr/local/bin:/usr/bin/:/bin:/opt/bin", "TMPDIR": p.config.Temp}
	maps.Copy(all, f.Env)
	maps.Copy(all, map[string]string{
		"AWS_LAMBDA_RUNTIME_API":          runtimeAPI,
		"AWS_LAMBDA_FUNCTION_NAME":        f.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(f.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + f.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      "local",
		"AWS_REGION":                      p.config.Region,
		"AWS_DEFAULT_REGION":              p.config.Region,
		// Services know the caller by its access key.
		"AWS_ACCESS_KEY_ID":     cmp.Or(f.Env["AWS_ACCESS_KEY_ID"], f.Name),
		"AWS_SECRET_ACCESS_KEY": cmp.Or(f.Env["AWS_SECRET_ACCESS_KEY"], "local"),
		"_HANDLER":              "bootstrap",
		"LAMBDA_TASK_ROOT":      "/var/task",
		"LAMBDA_RUNTIME_DIR":    "/var/runtime",
	})
	if f.Concurrency > 1 {
		all["AWS_LAMBDA_MAX_CONCURRENCY"] = strconv.Itoa(f.Concurrency)
		all["AWS_LAMBDA_INITIALIZATION_TYPE"] = "lambda-managed-instances"
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}
