package definition

import (
	"fmt"
	"math"

	"perigee/engine/expr"
)

// defaultRetry is the policy of a task that says nothing.
func defaultRetry() Retry {
	return Retry{MaxAttempts: 3, InitialIntervalMS: 1000, Backoff: 2, MaxIntervalMS: 3_600_000, Jitter: 0.2}
}

// retryPolicies compiles the named policies.
func (c *compiler) retryPolicies(n *node) {
	if n == nil || !c.isObject(n, "retry_policies") {
		return
	}
	for _, m := range n.object() {
		c.nameText(m.node, m.at, m.key, "a retry policy", policyName)
		if c.isObject(m.node, "a retry policy") {
			c.policies[m.key] = c.policy(m.node)
		} else {
			c.policies[m.key] = defaultRetry()
		}
	}
}

// readDefaults compiles `defaults`, whose durations are literal.
func (c *compiler) readDefaults(n *node) {
	if n == nil || !c.isObject(n, "defaults") {
		return
	}
	c.knownKeys(n, "defaults", []string{"retry", "timeout", "queue_timeout"})
	if v := n.get("retry"); v != nil {
		retry := c.retry(v)
		c.defaults.retry = &retry
	}
	c.defaults.timeout = c.literalTimeout(n.get("timeout"), "the default timeout")
	c.defaults.queueTimeout = c.literalTimeout(n.get("queue_timeout"), "the default queue_timeout")
}

func (c *compiler) literalTimeout(n *node, what string) *expr.Program {
	if n == nil {
		return nil
	}
	c.duration(n, what, aboveZero)
	if !n.isString() {
		return nil
	}
	return expr.LoadTemplate(n.value(), expr.Scope{})
}

// retry compiles `retry`: a policy, the name of one, or none.
func (c *compiler) retry(n *node) Retry {
	if !n.isString() {
		if n.kind != kindObject {
			c.wrongType(n, "retry", "a policy, the name of one, or none", "")
			return defaultRetry()
		}
		return c.policy(n)
	}
	if n.text == "none" {
		once := defaultRetry()
		once.MaxAttempts = 1
		return once
	}
	text, ok := c.literal(n, "retry")
	policy, known := c.policies[text]
	if !known {
		if ok {
			c.fault(n, CodeUnknownName, fmt.Sprintf("no retry policy %s is declared", shown(text)), orDeclare(near(c, text, c.policies, map[string]Retry{"none": {}}), "retry_policies"))
		}
		return defaultRetry()
	}
	c.used["retry_policies/"+text] = true
	return policy
}

var policyKeys = []string{"max_attempts", "initial_interval", "backoff", "max_interval", "jitter", "no_retry"}

// policy compiles one policy; what it leaves out is built in.
func (c *compiler) policy(n *node) Retry {
	c.knownKeys(n, "a retry policy", policyKeys)
	policy := defaultRetry()
	if v := n.get("max_attempts"); v != nil {
		policy.MaxAttempts = c.maxAttempts(v)
	}
	if v := n.get("initial_interval"); v != nil {
		policy.InitialIntervalMS = c.duration(v, "initial_interval", zeroOrMore)
	}
	if v := n.get("max_interval"); v != nil {
		policy.MaxIntervalMS = c.duration(v, "max_interval", zeroOrMore)
	}
	if v := n.get("backoff"); v != nil {
		policy.Backoff = c.number(v, "backoff", 1, 1000)
	}
	if v := n.get("jitter"); v != nil {
		policy.Jitter = c.number(v, "jitter", 0, 1)
	}
	if v := n.get("no_retry"); v != nil {
		policy.NoRetry = c.codes(v, "no_retry")
	}
	return policy
}

func (c *compiler) maxAttempts(n *node) uint32 {
	if n.isString() {
		if n.text != "unlimited" {
			c.wrongType(n, "max_attempts", "a whole number or unlimited", didYouMean(n.text, []string{"unlimited"}))
		}
		return 0
	}
	return uint32(c.integer(n, "max_attempts", 1, math.MaxUint32))
}
