// Package testtable opens the table for a test of the domain: a table in an SQLite file or,
// with the tag dynamo, a table in the DynamoDB Local whose URL is in SLIPWAY_TEST_DYNAMODB. So
// the same tests check in both adapters everything that the domain needs.
package testtable
