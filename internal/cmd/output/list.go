package output

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// List prints lists: aligned and with a header for a person at a terminal, one line with tabs
// for each row otherwise, or as JSON.
type List struct {
	asJSON bool
}

// Flags adds the flag that asks for JSON.
func (l *List) Flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&l.asJSON, "json", false, "print one JSON document")
}

// PrintAll prints values: what show makes of them as the document, or what row makes of them.
func PrintAll[T, S any](l *List, cmd *cobra.Command, values []T, show func(T) S, header []string, row func(T) []string) error {
	document, rows := make([]S, len(values)), make([][]string, len(values))
	for i, v := range values {
		document[i], rows[i] = show(v), row(v)
	}
	return l.Print(cmd, document, header, rows)
}

// Print prints either the document or the rows. An empty cell is shown as -.
func (l *List) Print(cmd *cobra.Command, document any, header []string, rows [][]string) error {
	w := cmd.OutOrStdout()
	if !l.asJSON {
		return printRows(w, IsTerminal(w), header, rows)
	}
	encoder := encoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// printRows aligns the rows and prints the header if a person looks on.
func printRows(w io.Writer, live bool, header []string, rows [][]string) error {
	out := w
	if live {
		aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		defer aligned.Flush()
		out, rows = aligned, append([][]string{header}, rows...)
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = cmp.Or(strings.ReplaceAll(Plain(cell), "\t", " "), "-")
		}
		if _, err := fmt.Fprintln(out, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// Time formats a time for people; it returns "" for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.RFC3339)
}
