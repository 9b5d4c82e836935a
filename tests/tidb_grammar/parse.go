// Command parse reads a JSON array of SQL statements from standard input, parses each with TiDB's own parser in TiDB's default
// SQL mode, and writes a JSON array of what it found: null for a statement that the grammar accepts as it stands, else the error
// or the warnings, one text a line. TiDB ignores an optimizer hint that it warns of.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
)

func main() {
	var statements []string
	if err := json.NewDecoder(os.Stdin).Decode(&statements); err != nil {
		fmt.Fprintln(os.Stderr, "standard input is not a JSON array of statements:", err)
		os.Exit(2)
	}
	found := make([]*string, len(statements))
	grammar := parser.New()
	for i, statement := range statements {
		found[i] = complaint(grammar, statement)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// complaint is nil if the grammar accepts the statement without a warning.
func complaint(grammar *parser.Parser, statement string) *string {
	parsed, warnings, err := grammar.ParseSQL(statement)
	var texts []string
	if err != nil {
		texts = append(texts, err.Error())
	} else if len(parsed) != 1 {
		texts = append(texts, fmt.Sprintf("%d statements instead of one", len(parsed)))
	}
	for _, warning := range warnings {
		texts = append(texts, warning.Error())
	}
	if texts == nil {
		return nil
	}
	text := strings.Join(texts, "\n")
	return &text
}
