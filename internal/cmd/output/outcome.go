package output

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Outcome says what a command has done: in a sentence for a person, or as JSON.
type Outcome struct {
	asJSON bool
}

// Flags adds the flag that asks for JSON.
func (o *Outcome) Flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print one JSON document")
}

// Print prints either the document, or a sentence on stderr.
func (o *Outcome) Print(cmd *cobra.Command, sentence string, document any) error {
	if o.asJSON {
		return encoder(cmd.OutOrStdout()).Encode(document)
	}
	_, err := fmt.Fprintln(cmd.ErrOrStderr(), sentence)
	return err
}

// Data prints either the document, or the one text that scripts want, such as the id of what was
// made.
func (o *Outcome) Data(cmd *cobra.Command, text string, document any) error {
	if o.asJSON {
		return encoder(cmd.OutOrStdout()).Encode(document)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

func encoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}
