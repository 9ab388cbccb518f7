// Command version prints its version.
package main

import (
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/build"
)

func main() { fmt.Println(build.Version()) }
