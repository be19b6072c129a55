package console

// Palette colours text, or leaves it as it is.
type Palette struct{ On bool }

// Style is one way to show text.
type Style string

// The styles.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Text is text in a style.
func (p Palette) Text(style Style, text string) string {
	if !p.On || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}
