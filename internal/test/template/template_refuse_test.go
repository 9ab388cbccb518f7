package template_test

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/template"
)

func TestWhatIsNotUnderstoodIsNamed(t *testing.T) {
	t.Parallel()
	const function = "Resources: {F: {Type: AWS::Serverless::Function, Properties: {%}}}"
	for text, want := range map[string]string{
		"Resources: {A: {Type: T, Properties: {x: !Base64 y}}}":                                                     "Fn::Base64",
		"Resources: {A: {Type: T, Properties: {x: !Ref B}}}":                                                        "no resource B",
		"Resources: {F: {Type: AWS::Serverless::Function}, A: {Type: T, Properties: {x: !Ref F.Alias}}}":            "function F has no alias",
		"Resources: {A: {Type: T, Properties: {x: !Sub '${B.Arn}'}}}":                                               "no resource B",
		"Resources: {A: {Type: T, Properties: {x: !Sub [1, {}]}}}":                                                  "no text",
		"Resources: {A: {Type: T, Condition: C}}":                                                                   "no condition C",
		"{Conditions: {C: text}, Resources: {A: {Type: T, Condition: C}}}":                                          "condition C",
		"Resources: {A: {Type: T, Properties: {x: !If [C, 1]}}}":                                                    "Fn::If",
		"Resources: {A: {Type: T, Properties: {x: !If [C, 1, 2]}}}":                                                 "no condition C",
		"Resources: {A: {Type: T, Properties: {x: !Join [1, [], 3]}}}":                                              "Fn::Join",
		"Resources: {A: {Type: T, Properties: {x: !Select [2, [a]]}}}":                                              "no item 2",
		"Resources: {A: {Type: T, Properties: {x: !FindInMap [a, b, c]}}}":                                          "no a",
		"{Parameters: {P: {Type: String}}, Resources: {}}":                                                          "P needs a value",
		"{Parameters: {P: {Type: String, Default: ab, AllowedPattern: '[a-z]'}}, Resources: {}}":                    `P is "ab"`,
		"{Parameters: {P: {Type: String, Default: c, AllowedValues: [a, b]}}, Resources: {}}":                       `P is "c"`,
		"{Resources: {}, Outputs: {O: {Value: !Ref B}}}":                                                            "output O",
		"{Resources: {}, Outputs: {O: {Condition: C, Value: b}}}":                                                   "output O",
		"{Globals: {Function: {Timeout: !Ref B}}, Resources: {}}":                                                   "globals of Function",
		strings.Replace(function, "%", "Events: {E: {Type: SQS}}", 1):                                               "type SQS",
		strings.Replace(function, "%", "Events: {E: {Type: Schedule, Properties: {Schedule: cron(0 * * * *)}}}", 1): "cron",
		strings.Replace(function, "%", "Policies: [{S3ReadPolicy: {BucketName: b}}]", 1):                            "no statements",
		strings.Replace(function, "%", "Timeout: soon", 1):                                                          "Timeout",
		"Resources: {R: {Type: AWS::IAM::Role, Properties: {Policies: [{PolicyDocument: {}}]}}}":                    "no statements",
		"Resources: {T: {Type: AWS::DynamoDB::Table, Properties: {DeletionProtectionEnabled: perhaps}}}":            "resource T",
		"Resources: {A: {Type: AWS::Serverless::Api, Properties: {StageName: []}}}":                                 "resource A",
		"Resources: {A: {Type: AWS::Serverless::Api, Properties: {MethodSettings: [{}]}}}":                          "must limit rate and burst",
		"Resources: {M: {Type: AWS::Serverless::StateMachine, Properties: {Name: []}}}":                             "resource M",
	} {
		_, err := parse(t, text).Resolve(template.Values{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
	if _, err := parse(t, sample).Resolve(template.Values{Parameters: map[string]string{"Other": "x"}}); err == nil {
		t.Error("a parameter was taken that there is none of")
	}
}

func TestWhatDoesNotParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Resources: {A: {Type: T}, A: {Type: T}}", "a: &b {c: d}\nResources: *b", "Resources: {A: !Sub {x: !!int y}}", "Resources: {A: [!!int y]}",
		"Resources: {A: {Type: T, DependsOn: {}}}",
	} {
		if _, err := template.Parse([]byte(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
