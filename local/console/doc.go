// Package console writes what commands say: tables and words for people, JSON
// lines for machines. Colours are for terminals alone, and NO_COLOR turns them
// off (https://no-color.org).
//
// Start reading at Printer.
package console
