package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// Schedule is the one schedule by which EventBridge Scheduler calls the tick
// function at the next wake-up.
type Schedule struct {
	Cloud  *Cloud
	Group  string
	Target string // ARN of the function
	Role   string // ARN of the role that may call it
}

// eventAge is how late a call may be: what comes later the hourly pass has seen.
const eventAge = 60 * time.Second

// lead is how far ahead a schedule is set at least: a moment that has passed when
// Scheduler reads it is none to come. It is up to a minute late in any case.
const lead = 3 * time.Second

// scheduleName is its name within the group; the functions' role may touch no other.
const scheduleName = "wake"

// Arm sets the schedule to a moment, in place of the one it had, or to soon where
// that has come. Scheduler counts in seconds: the moment is rounded up, for a call
// that comes early finds nothing to do.
func (s Schedule) Arm(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if soon := time.Now().Add(lead); at.Before(soon) {
		at = soon
	}
	expression := "at(" + at.Add(time.Second-time.Nanosecond).UTC().Format("2006-01-02T15:04:05") + ")"
	target := &types.Target{
		Arn: &s.Target, RoleArn: &s.Role, Input: aws.String(`{"source":"perigee.wake"}`),
		RetryPolicy: &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(0), MaximumEventAgeInSeconds: aws.Int32(int32(eventAge.Seconds()))},
	}
	window := &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff}
	client := s.Cloud.schedules()
	_, err := client.UpdateSchedule(ctx, &scheduler.UpdateScheduleInput{
		GroupName: &s.Group, Name: aws.String(scheduleName), ScheduleExpression: &expression, FlexibleTimeWindow: window, Target: target,
	})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		return named(expression, err)
	}
	_, err = client.CreateSchedule(ctx, &scheduler.CreateScheduleInput{
		GroupName: &s.Group, Name: aws.String(scheduleName), ScheduleExpression: &expression, FlexibleTimeWindow: window, Target: target,
	})
	var raced *types.ConflictException // by another tick, whose moment is as good: the next call looks again
	if errors.As(err, &raced) {
		return nil
	}
	return named(expression, err)
}

func named(expression string, err error) error {
	if err != nil {
		return fmt.Errorf("set the next wake-up to %s: %w", expression, err)
	}
	return nil
}
