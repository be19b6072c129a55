package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Refusals are what CloudFormation would say of a deployment before it makes
// anything: the assertions of the template's Rules that do not hold. Parameters
// that are not given have their defaults.
func (t *Template) Refusals(parameters map[string]string) (refusals []string, err error) {
	values := map[string]string{}
	for name, p := range object(t.root["Parameters"]) {
		values[name] = fmt.Sprint(object(p)["Default"])
	}
	for name, value := range parameters {
		if _, known := values[name]; !known {
			return nil, fmt.Errorf("there is no parameter %s", name)
		}
		values[name] = value
	}
	all := object(t.root["Rules"])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if condition := at(all[name], "RuleCondition"); condition != nil {
			if applies, err := holds(condition, values); err != nil || !applies {
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				continue
			}
		}
		for _, assertion := range list(at(all[name], "Assertions")) {
			ok, err := holds(at(assertion, "Assert"), values)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if !ok {
				refusals = append(refusals, text(assertion, "AssertDescription"))
			}
		}
	}
	return refusals, nil
}

// holds evaluates a condition of Rules, as far as template.yaml uses them.
func holds(expression any, values map[string]string) (bool, error) {
	for name, operand := range object(expression) {
		operands := list(operand)
		switch name {
		case "Fn::Equals", "Fn::EachMemberEquals":
			if len(operands) != 2 {
				return false, fmt.Errorf("%s has %d operands", name, len(operands))
			}
			want := fmt.Sprint(operands[1])
			members := []string{valueOf(operands[0], values)}
			if name == "Fn::EachMemberEquals" {
				members = strings.Split(members[0], ",")
			}
			return !slices.ContainsFunc(members, func(m string) bool { return m != want }), nil
		case "Fn::Not", "Fn::And", "Fn::Or":
			return combine(name, operands, values)
		}
		return false, fmt.Errorf("the function %s is not known to the rules", name)
	}
	return false, fmt.Errorf("expected a condition, got %v", expression)
}

func combine(name string, operands []any, values map[string]string) (bool, error) {
	all, some := true, false
	for _, operand := range operands {
		ok, err := holds(operand, values)
		if err != nil {
			return false, err
		}
		all, some = all && ok, some || ok
	}
	switch name {
	case "Fn::Not":
		return !all, nil
	case "Fn::And":
		return all, nil
	}
	return some, nil
}

func valueOf(operand any, values map[string]string) string {
	if name := text(operand, "Ref"); name != "" {
		return values[name]
	}
	return fmt.Sprint(operand)
}
