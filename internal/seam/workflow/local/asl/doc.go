// Package asl reads state machines in the Amazon States Language and computes what their
// states do with data. It calls no functions and keeps no time: package workflow/local does
// this, with the results of this package.
//
// It interprets the part of the language that the machines of infra/statemachines use, all with
// JSONPath, and nothing else: Step Functions executes the same files, so each further construct
// would have to behave here exactly as it does there, and no machine would notice if it did not.
//
//	machine   Comment, StartAt, States, TimeoutSeconds
//	Task      Resource lambda:invoke with Parameters FunctionName and Payload, ResultSelector,
//	          ResultPath, TimeoutSeconds, Retry, Catch
//	Choice    Choices, each with Variable and StringEquals, and Default
//	Wait      Seconds or TimestampPath
//	Succeed
//	Fail      Error, Cause
//
// A path is $ or $.name.name. A payload template is made of objects, single values and members
// "name.$" with a path.
//
// Parse checks a definition once and compiles its paths and templates. It refuses everything else
// by machine and state, so that no part of a definition is ever ignored: other states (Pass,
// Parallel, Map), other fields (InputPath, OutputPath, SecondsPath), other comparisons, the context
// object, indexes, intrinsic functions, arrays in templates, JSONata.
package asl
