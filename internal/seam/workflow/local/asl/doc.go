// Package asl reads state machines in the Amazon States Language and computes what their
// states do with data. It calls no functions and keeps no time: package workflow/local does
// this, with the results of this package.
//
// Parse checks a definition once and compiles its paths, templates and rules. It reports every
// construct that it does not implement by machine, state and field, so that no part of a
// definition is ever ignored. Implemented, all with JSONPath:
//
//	machine   Comment, Version 1.0, QueryLanguage JSONPath, StartAt, States, TimeoutSeconds
//	Task      lambda:invoke (FunctionName, Payload), InputPath, Parameters, ResultSelector,
//	          ResultPath, OutputPath,
//	          TimeoutSeconds, Retry, Catch
//	Choice    InputPath, OutputPath, Choices, Default; And, Or, Not and every comparison of the
//	          language
//	Wait      InputPath, OutputPath, and Seconds, SecondsPath, Timestamp or TimestampPath
//	Pass      InputPath, Parameters, Result, ResultPath, OutputPath
//	Succeed   InputPath, OutputPath
//	Fail      Error, Cause
//
// Not implemented: Parallel and Map, JSONata, variables, intrinsic functions, heartbeats,
// paths that may select several values. A path is a Reference Path, $.name['name'][0], or a
// path into the context object, for example $$.Execution.Name.
package asl
