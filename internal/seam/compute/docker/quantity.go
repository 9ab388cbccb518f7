package docker

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// suffixes of Kubernetes quantities; the longer ones first.
var suffixes = []struct {
	name   string
	factor float64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12},
}

// quantity reads an amount as Kubernetes writes it: 500m, 0.5, 128Mi.
func quantity(text string) (float64, error) {
	number, factor := text, 1.0
	for _, suffix := range suffixes {
		if rest, ok := strings.CutSuffix(text, suffix.name); ok {
			number, factor = rest, suffix.factor
			break
		}
	}
	amount, err := strconv.ParseFloat(number, 64)
	if err != nil || amount < 0 || math.IsInf(amount, 0) || math.IsNaN(amount) {
		return 0, fmt.Errorf("%q is no amount such as 500m, 2 or 128Mi", text)
	}
	return amount * factor, nil
}
