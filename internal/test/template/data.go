package template

import "path"

// Machine is a Step Functions state machine.
type Machine struct {
	// Name is the logical id, MachineName is the name in the account: <stack>-run.
	Name, MachineName string
	// Kind is STANDARD or EXPRESS.
	Kind string
	// Definition is the path of the definition, relative to the template.
	Definition string
	// Substitutions replace ${Name} in the definition.
	Substitutions map[string]string
	// Role is the logical id of its role, "" if SAM makes one of the machine's policies.
	Role       string
	Statements []Statement
	Managed    []string
	// LogLevel is OFF, ERROR, FATAL or ALL; LogsData says whether logs contain inputs and
	// outputs.
	LogLevel string
	LogsData bool
	Tracing  bool
}

// Table is a DynamoDB table.
type Table struct {
	// Name is the logical id, TableName is the name in the account.
	Name, TableName string
	// Attributes are the types of the key attributes: S, N or B.
	Attributes map[string]string
	Key        []KeyElement
	Indexes    []Index
	// BillingMode is PAY_PER_REQUEST or PROVISIONED.
	BillingMode string
	// TTL is the attribute by which items expire, "" if items do not expire.
	TTL string
	// Stream is the view type of the table's stream, "" if there is no stream.
	Stream             string
	PointInTime        bool
	DeletionProtection bool
	Encrypted          bool
	// DeletionPolicy and UpdateReplacePolicy say what happens to the table when the stack is
	// deleted or the table is replaced.
	DeletionPolicy, UpdateReplacePolicy string
}

// KeyElement is an attribute of a key; Kind is HASH or RANGE.
type KeyElement struct {
	Name string `json:"AttributeName"`
	Kind string `json:"KeyType"`
}

// Index is a global secondary index.
type Index struct {
	Name string
	Key  []KeyElement
	// Projection is ALL, KEYS_ONLY or INCLUDE, which contains the attributes Included beside
	// the keys.
	Projection string
	Included   []string
}

func readMachine(name string, properties map[string]any) (Machine, error) {
	var p struct {
		Name, Type, Role        string
		DefinitionURI           string `json:"DefinitionUri"`
		DefinitionSubstitutions map[string]string
		Policies                []any
		Logging                 struct {
			Level                string
			IncludeExecutionData bool
		}
		Tracing struct{ Enabled bool }
	}
	if err := convert(properties, &p); err != nil {
		return Machine{}, err
	}
	m := Machine{
		Name: name, MachineName: p.Name, Kind: p.Type, Definition: p.DefinitionURI, Substitutions: p.DefinitionSubstitutions,
		LogLevel: p.Logging.Level, LogsData: p.Logging.IncludeExecutionData, Tracing: p.Tracing.Enabled,
	}
	if p.Role != "" {
		m.Role = path.Base(p.Role)
	}
	var err error
	m.Statements, m.Managed, err = readPolicies(p.Policies)
	return m, err
}

func readTable(resource Resource) (Table, error) {
	var p struct {
		TableName              string
		BillingMode            string
		AttributeDefinitions   []struct{ AttributeName, AttributeType string }
		KeySchema              []KeyElement
		GlobalSecondaryIndexes []struct {
			IndexName  string
			KeySchema  []KeyElement
			Projection struct {
				ProjectionType   string
				NonKeyAttributes []string
			}
		}
		TimeToLiveSpecification struct {
			AttributeName string
			Enabled       bool
		}
		StreamSpecification              struct{ StreamViewType string }
		PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
		SSESpecification                 struct{ SSEEnabled bool }
		DeletionProtectionEnabled        flag
	}
	if err := convert(resource.Properties, &p); err != nil {
		return Table{}, err
	}
	t := Table{
		Name: resource.Name, TableName: p.TableName, BillingMode: p.BillingMode, Key: p.KeySchema, Attributes: map[string]string{},
		Stream: p.StreamSpecification.StreamViewType, PointInTime: p.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled,
		DeletionProtection: bool(p.DeletionProtectionEnabled), Encrypted: p.SSESpecification.SSEEnabled,
		DeletionPolicy: resource.DeletionPolicy, UpdateReplacePolicy: resource.UpdateReplacePolicy,
	}
	if p.TimeToLiveSpecification.Enabled {
		t.TTL = p.TimeToLiveSpecification.AttributeName
	}
	for _, attribute := range p.AttributeDefinitions {
		t.Attributes[attribute.AttributeName] = attribute.AttributeType
	}
	for _, index := range p.GlobalSecondaryIndexes {
		t.Indexes = append(t.Indexes, Index{
			Name: index.IndexName, Key: index.KeySchema, Projection: index.Projection.ProjectionType, Included: index.Projection.NonKeyAttributes,
		})
	}
	return t, nil
}
