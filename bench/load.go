package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// document is what every step is given and gives back: about 200 bytes of JSON.
type document struct {
	Order    string   `json:"order"`
	Step     int      `json:"step"`
	Customer customer `json:"customer"`
	Items    []item   `json:"items"`
	Comment  string   `json:"comment"`
}

type customer struct {
	ID      string `json:"id"`
	Country string `json:"country"`
}

type item struct {
	SKU   string `json:"sku"`
	Count int    `json:"count"`
}

func newDocument(order string) document {
	return document{
		Order: order, Customer: customer{"cus-004711", "DE"}, Items: []item{{"sku-1000-blue", 2}, {"sku-2500-red", 1}},
		Comment: "leave it with the neighbours on the second floor, please",
	}
}

// The one task that there is, and its version.
const (
	taskName    = "bench.step"
	taskVersion = "1.0.0"
)

const preamble = `name: %s
version: "1.0.0"
timeout: 24h
tasks: { bench.step: { version: "1.0.0" } }
signals: { note: {}, done: {} }
steps:
`

// sequentialName is the workflow of n steps in a row.
func sequentialName(n int) string { return fmt.Sprintf("sequential-%d", n) }

// sequential is its definition: each step is given what the one before it gave.
func sequential(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, preamble, sequentialName(n))
	for i := range n {
		from := "${input}"
		if i > 0 {
			from = fmt.Sprintf("${steps.s%d.output}", i-1)
		}
		fmt.Fprintf(&b, "  - { id: s%d, task: bench.step, with: %q }\n", i, from)
	}
	fmt.Fprintf(&b, "output: \"${steps.s%d.output}\"\n", n-1)
	return b.String()
}

// fanOutName is the workflow of n steps at once.
func fanOutName(n int) string { return fmt.Sprintf("fan-out-%d", n) }

// fanOut is its definition. The output is the list of what the steps gave, where
// that is no longer than an output may be.
func fanOut(n int) string {
	output := "${steps.each.output}"
	if n > 1000 {
		output = "${size(steps.each.output)}"
	}
	return fmt.Sprintf(preamble, fanOutName(n)) +
		fmt.Sprintf("  - { id: each, for: \"lists.range(%d)\", task: bench.step, with: \"${input}\" }\n", n) +
		fmt.Sprintf("output: %q\n", output)
}

// chainName is the workflow of n elements, one after the other: a long history
// of a short definition.
func chainName(n int) string { return fmt.Sprintf("chain-%d", n) }

func chain(n int) string {
	return strings.Replace(strings.Replace(fanOut(n), fanOutName(n), chainName(n), 1), "task:", "max_parallel: 1, task:", 1)
}

// waitingName is the workflow that takes notes until it is done.
const waitingName = "waiting"

func waiting() string { return fmt.Sprintf(preamble, waitingName) + "  - { id: wait, await: done }\n" }

// step is the task's handler: it reads the document and gives it back changed.
func step(input json.RawMessage) (document, error) {
	var d document
	if err := json.Unmarshal(input, &d); err != nil {
		return d, err
	}
	d.Step++
	return d, nil
}
