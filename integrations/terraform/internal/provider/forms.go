package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"tocsin.dev/go/tocsin"
)

// form is a kind of texts of which several mean the same, such as 60s and 1m. The server answers one of them, and Terraform
// would take any other for a difference.
type form struct {
	// meaning is what a text means: equal values for texts that are the same. The error has what is wrong, and the mend.
	meaning func(text string) (any, error)
}

var (
	durations         = &form{func(text string) (any, error) { return durationOf(text) }}
	positiveDurations = &form{func(text string) (any, error) {
		found, err := durationOf(text)
		if err == nil && found == 0 {
			err = errors.New("must be greater than zero; leave it out to have none")
		}
		return found, err
	}}
	instants = &form{func(text string) (any, error) {
		var found tocsin.Opt[time.Time]
		if found.UnmarshalJSON(quoted(text)) != nil {
			return nil, fmt.Errorf("%q is no instant; write one as 2027-01-31T12:00:00Z", text)
		}
		return found.Or(time.Time{}).UnixMicro(), nil
	}}
	jsonTexts = &form{func(text string) (any, error) {
		var found any
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber() // 1 and 1.0 reach the receiver as they are
		if !json.Valid([]byte(text)) || decoder.Decode(&found) != nil {
			return nil, errors.New("is not JSON; make it with jsonencode(…)")
		}
		return found, nil
	}}
)

func durationOf(text string) (time.Duration, error) {
	var found tocsin.Opt[time.Duration]
	if found.UnmarshalJSON(quoted(text)) != nil {
		return 0, fmt.Errorf("%q is no duration; write one as 90s, 15m or 1d", text)
	}
	return found.Or(0), nil
}

func quoted(text string) []byte {
	encoded, _ := json.Marshal(text) // no text fails
	return encoded
}

// same reports whether both texts mean the same.
func (f *form) same(one, other string) bool {
	if one == other {
		return true
	}
	first, err := f.meaning(one)
	second, err2 := f.meaning(other)
	return err == nil && err2 == nil && reflect.DeepEqual(first, second)
}

// formType is the type of attributes whose values are texts of a form.
type formType struct {
	basetypes.StringType
	form *form
}

func (t formType) Equal(other attr.Type) bool {
	same, ok := other.(formType)
	return ok && same.form == t.form
}

func (t formType) String() string { return "formType" }

func (t formType) ValueType(context.Context) attr.Value { return formValue{form: t.form} }

func (t formType) ValueFromString(
	_ context.Context, value basetypes.StringValue,
) (basetypes.StringValuable, diag.Diagnostics) {
	return formValue{value, t.form}, nil
}

func (t formType) ValueFromTerraform(ctx context.Context, value tftypes.Value) (attr.Value, error) {
	found, err := t.StringType.ValueFromTerraform(ctx, value)
	if err != nil {
		return nil, err
	}
	return formValue{found.(basetypes.StringValue), t.form}, nil
}

// formValue is a text of a form.
type formValue struct {
	basetypes.StringValue
	form *form
}

func (v formValue) Equal(other attr.Value) bool {
	same, ok := other.(formValue)
	return ok && v.StringValue.Equal(same.StringValue)
}

func (v formValue) Type(context.Context) attr.Type { return formType{form: v.form} }

// StringSemanticEquals lets the framework keep the text that the configuration has where the server answers another one.
func (v formValue) StringSemanticEquals(_ context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	same, ok := other.(formValue)
	return ok && v.form.same(v.ValueString(), same.ValueString()), nil
}

// ValidateAttribute reports a text that is not of the form.
func (v formValue) ValidateAttribute(_ context.Context, request xattr.ValidateAttributeRequest,
	response *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := v.form.meaning(v.ValueString()); err != nil {
		refuse(&response.Diagnostics, request.Path, err.Error())
	}
}
