// Package testtable opens the table of a test of the domain: one in an SQLite file or, with the tag
// dynamo, one in the DynamoDB Local whose URL is in SLIPWAY_TEST_DYNAMODB, so that the same tests
// hold both adapters to what the domain needs of them.
package testtable
