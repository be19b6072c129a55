package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// entry is one line of the bank's or the warehouse's book.
type entry struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	Order  string `json:"order"`
	What   string `json:"what"` // what was released, voided or shipped
}

type book []entry

// readBook reads the lines about one order. A book that is not there yet is
// empty, and so is a line that is being written.
func readBook(path, order string) (book, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var b book
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if e.Order == order {
			b = append(b, e)
		}
	}
	return b, nil
}

// with selects by action.
func (b book) with(actions ...string) book {
	var some book
	for _, e := range b {
		for _, a := range actions {
			if e.Action == a {
				some = append(some, e)
			}
		}
	}
	return some
}

func (b book) ids() string {
	var list []string
	for _, e := range b {
		list = append(list, e.ID)
	}
	return strings.Join(list, " ")
}

func (b book) objects() string {
	var list []string
	for _, e := range b {
		list = append(list, e.What)
	}
	return strings.Join(list, " ")
}
