package output

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// WithJSON gives a command the flag that asks for JSON, which the functions below look at.
func WithJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("json", false, "print one JSON document")
	return cmd
}

// AsJSON reports whether JSON is asked for.
func AsJSON(cmd *cobra.Command) bool { return cmd.Flag("json").Value.String() == "true" }

// Done says what a command has done: in a sentence on stderr for a person, or as JSON.
func Done(cmd *cobra.Command, sentence string, document any) error {
	return say(cmd, cmd.ErrOrStderr(), sentence, document)
}

// Data prints either the document, or the one text that scripts want, such as the id of what was
// made.
func Data(cmd *cobra.Command, text string, document any) error {
	return say(cmd, cmd.OutOrStdout(), text, document)
}

func say(cmd *cobra.Command, w io.Writer, text string, document any) error {
	if AsJSON(cmd) {
		return encoder(cmd.OutOrStdout()).Encode(document)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func encoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// PrintAll prints values: what show makes of them as the document, or what row makes of them.
func PrintAll[T, S any](cmd *cobra.Command, values []T, show func(T) S, header []string, row func(T) []string) error {
	document, rows := make([]S, len(values)), make([][]string, len(values))
	for i, v := range values {
		document[i], rows[i] = show(v), row(v)
	}
	return Print(cmd, document, header, rows)
}

// PrintList prints values as the document, or what row makes of them.
func PrintList[T any](cmd *cobra.Command, values []T, header []string, row func(T) []string) error {
	return PrintAll(cmd, values, func(v T) T { return v }, header, row)
}

// Print prints either the document or the rows: aligned and with a header for a person at a
// terminal, one line with tabs for each row otherwise. An empty cell is shown as -.
func Print(cmd *cobra.Command, document any, header []string, rows [][]string) error {
	w := cmd.OutOrStdout()
	if !AsJSON(cmd) {
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
