package stepfunctions

import (
	"errors"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/emulator/awsjson"
)

// arns builds and parses the ARNs of one account and stack.
type arns struct {
	// partition, region and account are the values in the prefix; stack precedes the names of
	// machines.
	partition, region, account, stack string
}

func parsePrefix(prefix string) (arns, error) {
	parts := strings.Split(prefix, ":")
	if len(parts) != 7 || parts[0] != "arn" || parts[2] != "states" || parts[5] != "stateMachine" {
		return arns{}, errors.New("the prefix must be arn:<partition>:states:<region>:<account>:stateMachine:<start of the names>")
	}
	return arns{partition: parts[1], region: parts[3], account: parts[4], stack: parts[6]}, nil
}

func (a arns) of(kind string) string {
	return "arn:" + a.partition + ":states:" + a.region + ":" + a.account + ":" + kind + ":"
}

// machineName is the machine's name in the account.
func (a arns) machineName(machine workflow.Machine) string { return a.stack + string(machine) }

func (a arns) machine(machine workflow.Machine) string {
	return a.of("stateMachine") + a.machineName(machine)
}

func (a arns) execution(machine workflow.Machine, name string) string {
	return a.of("execution") + a.machineName(machine) + ":" + name
}

func (a arns) role() string {
	return "arn:" + a.partition + ":iam::" + a.account + ":role/state-machines"
}

// parseMachine returns the machine that an ARN names; a machine of another account or stack
// does not exist here.
func (a arns) parseMachine(arn string) (workflow.Machine, error) {
	if parts := strings.Split(arn, ":"); len(parts) != 7 || parts[2] != "states" || parts[5] != "stateMachine" {
		return "", invalidARN(arn)
	}
	name, ok := strings.CutPrefix(arn, a.of("stateMachine")+a.stack)
	if !ok {
		return "", noMachine(arn)
	}
	return workflow.Machine(name), nil
}

// parseExecution returns the machine and the name of the execution that an ARN names.
func (a arns) parseExecution(arn string) (machine workflow.Machine, name string, err error) {
	parts := strings.Split(arn, ":")
	if len(parts) != 8 || parts[2] != "states" || parts[5] != "execution" || parts[7] == "" {
		return "", "", invalidARN(arn)
	}
	short, ok := strings.CutPrefix(parts[6], a.stack)
	machine = workflow.Machine(short)
	if !ok || a.execution(machine, parts[7]) != arn {
		return "", "", noExecution(arn)
	}
	return machine, parts[7], nil
}

func invalidARN(arn string) error {
	return &awsjson.Error{Name: "InvalidArn", Message: "Invalid Arn: '" + arn + "'"}
}

func noExecution(arn string) error {
	return &awsjson.Error{Name: "ExecutionDoesNotExist", Message: "Execution Does Not Exist: '" + arn + "'"}
}
