// Package providers serves the interfaces of model providers with a model that has fixed answers:
// chat completions, responses and embeddings in the manner of OpenAI, and messages in the manner
// of Anthropic, each whole and streamed, with tools and structured outputs.
//
// The same request always gets the same answer, with the same id. The last of the words `quickly`
// and `slowly` in a conversation decides how long an answer is: a slow answer takes longer than a
// test needs to interrupt it. A question that names a tool ("use the tool NAME") gets a call of
// that tool, and a request for a structured output gets values that its schema allows.
package providers
