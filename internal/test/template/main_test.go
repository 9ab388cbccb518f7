package template_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/template"
)

// sample has one example of every feature that the package understands.
const sample = `
Transform: AWS::Serverless-2016-10-31
Parameters:
  Architecture: {Type: String, Default: arm64, AllowedValues: [arm64, x86_64]}
  Subnets: {Type: CommaDelimitedList, Default: ""}
  Limit: {Type: Number, Default: 0}
  Rate: {Type: Number, Default: 10}
  Keep: {Type: String, Default: "true"}
  Domain: {Type: String, Default: ""}
Mappings:
  Sizes: {arm64: {memory: 512}, x86_64: {memory: 1024}}
Conditions:
  HasSubnets: !Not [!Equals [!Join ["", !Ref Subnets], ""]]
  HasLimit: !Not [!Equals [!Ref Limit, 0]]
  HasDomain: !Not [!Equals [!Ref Domain, ""]]
  HasBoth: !And [!Condition HasSubnets, !Condition HasLimit]
  HasEither: !Or [!Condition HasSubnets, !Condition HasLimit]
Globals:
  Function:
    Handler: bootstrap
    Runtime: provided.al2023
    Architectures: [!Ref Architecture]
    Timeout: 29
    MemorySize: !FindInMap [Sizes, !Ref Architecture, memory]
    Tracing: Active
    Environment: {Variables: {TABLE: !Ref Table, SHARED: a, PREFIX: !Sub "arn:${AWS::Partition}:${AWS::AccountId}:${AWS::StackName}-"}}
Resources:
  # The door.
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: v
      BinaryMediaTypes: [application~1octet-stream]
      MethodSettings:
        - {ResourcePath: /*, HttpMethod: "*", ThrottlingRateLimit: !Ref Rate, ThrottlingBurstLimit: 20}
        - {ResourcePath: /a, HttpMethod: GET, ThrottlingRateLimit: 0.5, ThrottlingBurstLimit: 1}
      Auth:
        DefaultAuthorizer: Open
        Authorizers:
          Open: {FunctionArn: !GetAtt Guard.Arn, FunctionPayloadType: REQUEST, Identity: {ReauthorizeEvery: 0}}
          Key: {FunctionArn: !GetAtt Guard.Arn, FunctionPayloadType: REQUEST, Identity: {Headers: [X-Api-Key], ReauthorizeEvery: 60}}
          Usual: {FunctionArn: !GetAtt Guard.Arn, FunctionPayloadType: REQUEST, Identity: {QueryStrings: [q], Context: [path]}}
      GatewayResponses:
        THROTTLED:
          StatusCode: 429
          ResponseTemplates: {application/json: '{"detail": "slow"}'}
          ResponseParameters: {Headers: {Retry-After: "'2'"}}
        DEFAULT_4XX: {ResponseTemplates: {application/json: "{}"}}
  # ------ functions

  # Checks who
  # comes in.
  Guard:
    Type: AWS::Serverless::Function
    Metadata: {SkipBuild: true}
    Properties: {CodeUri: ./build/guard, Timeout: 5, Policies: [!Ref Shared]}
  Work:
    Type: AWS::Serverless::Function
    DependsOn: Guard
    Properties:
      CodeUri: ./build/work
      AutoPublishAlias: live
      DeploymentPreference: {Type: AllAtOnce, Alarms: [!Ref Alarm]}
      ReservedConcurrentExecutions: !If [HasLimit, !Ref Limit, !Ref AWS::NoValue]
      VpcConfig: !If [HasSubnets, {SubnetIds: !Ref Subnets}, !Ref AWS::NoValue]
      LoggingConfig: {LogGroup: !Ref Logs}
      Environment: {Variables: {SHARED: b, OWN: !Select [1, !Split ["-", "x-y-z"]], LIST: !Join [",", !Ref Subnets], NUMBER: !Ref Limit}}
      Policies:
        - AWSLambdaExecute
        - !Ref Shared
        - Version: 2012-10-17
          Statement:
            - {Effect: Allow, Action: [s:A, s:B], Resource: !Sub ["${Stack}/${Table.Arn}/${!literal}", {Stack: !Ref AWS::StackName}]}
            - !If [HasEither, {Effect: Deny, Action: s:C, Resource: ["*"], Condition: {StringEquals: {a: b}}}, !Ref AWS::NoValue]
      Events:
        Plain: {Type: Api, Properties: {RestApiId: !Ref Api, Path: "/b/{id}", Method: any}}
        Keyed: {Type: Api, Properties: {RestApiId: !Ref Api, Path: /a, Method: post, Auth: {Authorizer: Key}, ResponseTransferMode: RESPONSE_STREAM, TimeoutInMillis: 900000}}
        Free: {Type: Api, Properties: {RestApiId: !Ref Api, Path: /a, Method: get, Auth: {Authorizer: NONE}}}
        Timer: {Type: Schedule, Properties: {Schedule: rate(2 hours), Input: "{}"}}
  Machine:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: !Sub ${AWS::StackName}-work
      Type: STANDARD
      DefinitionUri: work.asl.json
      DefinitionSubstitutions: {WorkArn: !Ref Work.Alias}
      Logging: {Level: ERROR, IncludeExecutionData: true}
      Tracing: {Enabled: true}
      Policies: [{Statement: [{Effect: Allow, Action: lambda:InvokeFunction, Resource: !Ref Work.Alias}]}]
  Ruled:
    Type: AWS::Serverless::StateMachine
    Properties: {Name: ruled, DefinitionUri: work.asl.json, Role: !GetAtt Ruler.Arn}
  Ruler:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Principal: {Service: states.amazonaws.com}, Action: sts:AssumeRole}]}
      ManagedPolicyArns: [!Ref Shared, arn:aws:iam::aws:policy/Some]
      Policies: [{PolicyName: p, PolicyDocument: {Statement: [{Effect: Allow, Action: lambda:InvokeFunction, Resource: !Ref Work.Alias}]}}]
  # It watches versions, so the alias waits for it, which waits for the function.
  Alarm: {Type: AWS::CloudWatch::Alarm, Properties: {Dimensions: [{Name: ExecutedVersion, Value: !GetAtt Work.Version.Version}]}}
  Table:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}, {AttributeName: n, AttributeType: N}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      GlobalSecondaryIndexes: [{IndexName: byN, KeySchema: [{AttributeName: n, KeyType: HASH}], Projection: {ProjectionType: INCLUDE, NonKeyAttributes: [m]}}]
      TimeToLiveSpecification: {AttributeName: expires, Enabled: true}
      StreamSpecification: {StreamViewType: NEW_IMAGE}
      PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}
      DeletionProtectionEnabled: !Ref Keep
      SSESpecification: {SSEEnabled: true}
  Logs: {Type: AWS::Logs::LogGroup, Properties: {LogGroupName: !Sub "/x/${AWS::StackName}", RetentionInDays: 7}}
  Shared:
    Type: AWS::IAM::ManagedPolicy
    Properties: {PolicyDocument: {Statement: [{Effect: Allow, Action: s:Shared, Resource: !GetAtt Table.Arn}]}}
  Role:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Principal: {Service: ecs-tasks.amazonaws.com}, Action: sts:AssumeRole}]}
      ManagedPolicyArns: [arn:aws:iam::aws:policy/Some]
      Policies: [{PolicyName: p, PolicyDocument: {Statement: [{Effect: Allow, Action: s:R, Resource: !GetAtt Logs.Arn}]}}]
  Record:
    Type: AWS::Route53::RecordSet
    Condition: HasDomain
    Properties: {Name: !Ref Domain}
Outputs:
  Url: {Value: !Sub "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/${Api.Stage}"}
  Domain: {Condition: HasDomain, Value: !Ref Record}
`

func parse(t *testing.T, text string) *template.Template {
	t.Helper()
	parsed, err := template.Parse([]byte(text))
	check.Must(t, err)
	return parsed
}

func resolve(t *testing.T, values template.Values) *template.Stack {
	t.Helper()
	stack, err := parse(t, sample).Resolve(values)
	check.Must(t, err)
	return stack
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "template.yaml")
	if _, err := template.Load(path); err == nil {
		t.Error("a file that is not there was read")
	}
	for text, good := range map[string]bool{sample: true, "": false, "Resources: [": false, "Resources: text": false} {
		check.Must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := template.Load(path); (err == nil) != good {
			t.Errorf("got %v for %.20q", err, text)
		}
	}
}
