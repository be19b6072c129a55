package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// entry is one thing that was done. What names its object: an item for
// reserve and ship, an id for release and void.
type entry struct {
	Key    string `json:"key"`
	ID     string `json:"id"`
	Action string `json:"action"`
	Order  string `json:"order"`
	What   string `json:"what,omitempty"`
}

// ledger is a file of JSON lines that remembers what was done under which
// idempotency key. A line is on the disk before its action counts as done.
type ledger struct {
	mu   sync.Mutex
	file *os.File
	done map[string]string // key → id
}

func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l := &ledger{file: file, done: map[string]string{}}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			file.Close()
			return nil, fmt.Errorf("read ledger %s: %w", path, err)
		}
		l.done[e.Key] = e.ID
	}
	if err := lines.Err(); err != nil {
		file.Close()
		return nil, fmt.Errorf("read ledger %s: %w", path, err)
	}
	return l, nil
}

// once enters e under the key and gives its id, or the id that it was entered
// under before.
func (l *ledger) once(key string, e entry) (id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id, known := l.done[key]; known {
		return id, nil
	}
	e.Key, e.ID = key, fmt.Sprintf("%s-%d", e.Action, len(l.done)+1)
	line, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("write ledger: %w", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return "", fmt.Errorf("write ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return "", fmt.Errorf("write ledger: %w", err)
	}
	l.done[key] = e.ID
	return e.ID, nil
}

func (l *ledger) close() { _ = l.file.Close() }
