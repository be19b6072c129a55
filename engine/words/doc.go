// Package words shortens what messages show and finds the name that was meant.
package words
