package main
import "context"
func (s *suite) calls(ctx context.Context) error {return nil}
func (s *suite) pure(ctx context.Context) error {return nil}
