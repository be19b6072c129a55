package history

import (
	"encoding/binary"
	"iter"
	"strings"

	"perigee/engine/exactjson"
)

// Signals yields the signals received, in the order of their arrival.
func (s *State) Signals() iter.Seq[Signal] {
	return func(yield func(Signal) bool) {
		s.signals.Scan(func(_ uint64, signal *Signal) bool { return yield(*signal) })
	}
}

// SignalCount is the number of signals received.
func (s *State) SignalCount() int { return s.signals.Len() }

// SignalByID is the signal that came with a signal_id of its sender.
func (s *State) SignalByID(id string) (Signal, bool) {
	seq, ok := s.signalIDs.Get(id)
	if !ok {
		return Signal{}, false
	}
	return s.signal(seq)
}

// OldestUntaken is the first signal of a name that no unit has taken. It does
// not walk over those that were.
func (s *State) OldestUntaken(name string) (Signal, bool) {
	var oldest uint64
	found := false
	prefix := name + "\x00"
	s.untaken.Ascend(prefix, func(key string, seq uint64) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		// A longer key is that of a name which itself holds a zero byte.
		found = len(key) == len(prefix)+8
		oldest = seq
		return !found
	})
	if !found {
		return Signal{}, false
	}
	return s.signal(oldest)
}

func (s *State) signal(seq uint64) (Signal, bool) {
	signal, ok := s.signals.Get(seq)
	if !ok {
		return Signal{}, false
	}
	return *signal, true
}

// untakenKey orders the untaken signals by name and then by arrival.
func untakenKey(name string, seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(name+"\x00"), seq))
}

func (s *State) receive(e SignalReceived, seq uint64, at *int64) {
	s.addSignal(&Signal{Seq: seq, Name: e.Name, Payload: e.Payload.OrNull(), ReceivedAtMS: *at, ID: e.SignalID})
}

// addSignal puts a signal into the buffer and its indexes.
func (s *State) addSignal(signal *Signal) {
	s.signals.Set(signal.Seq, signal)
	if signal.DeliveredTo == nil {
		s.untaken.Set(untakenKey(signal.Name, signal.Seq), signal.Seq)
	}
	if signal.ID == "" {
		return
	}
	if _, ok := s.signalIDs.Get(signal.ID); !ok {
		s.signalIDs.Set(signal.ID, signal.Seq)
	}
}

// take gives a signal to a unit; its payload is null if there is no such signal.
func (s *State) take(e SignalDelivered) exactjson.Value {
	signal, ok := s.signals.Get(e.SignalSeq)
	if !ok {
		return exactjson.Null
	}
	taken := *signal
	taken.DeliveredTo = &e.Step
	s.signals.Set(taken.Seq, &taken)
	s.untaken.Delete(untakenKey(taken.Name, taken.Seq))
	return taken.Payload
}
