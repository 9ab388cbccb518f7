// Package runners adds to a stack the runner of its function, which lasts as long as the process.
package runners
