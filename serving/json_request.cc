#include "serving/json_request.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "serving/nested_value.h"

namespace parasol {
namespace {

// Length of the parser's reason in an answer.
constexpr size_t kMaxReasonBytes = 120;
constexpr absl::string_view kBinaryKey = "b64";

// Takes the parser's events. Each returns false to stop the parser, with the
// reason in status().
class RequestReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit RequestReader(RequestColumns& columns) : columns_(columns) {}

  const absl::Status& status() const { return status_; }
  absl::StatusOr<JsonRequest> Result() && {
    if (!status_.ok()) return status_;
    if (!has_examples_) {
      return absl::InvalidArgumentError(
          "the body has neither \"instances\" nor \"inputs\"");
    }
    if (!request_.is_rows) {
      RETURN_IF_ERROR(columns_.EndColumns());
    }
    return std::move(request_);
  }

  bool null() override {
    if (place_ == Place::kIgnored) return To(Place::kInstance);
    if (!BeginValue("null")) return false;
    if (place_ == Place::kValue && !value_.is_open()) {
      return Check(columns_.EndValue(column_, std::nullopt)) && LeaveValue();
    }
    return Refuse("null inside a list of values");
  }
  bool boolean(bool /*value*/) override {
    if (place_ == Place::kIgnored) return To(Place::kInstance);
    if (!BeginValue("true or false")) return false;
    return Refuse("true or false; give a number or a text");
  }
  bool number_integer(number_integer_t number) override {
    if (place_ == Place::kIgnored) return To(Place::kInstance);
    return BeginValue("a number") &&
           Check(columns_.AddInteger(column_, number)) && EndElement();
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (place_ == Place::kIgnored) return To(Place::kInstance);
    return BeginValue("a number") &&
           Check(columns_.AddUnsigned(column_, number)) && EndElement();
  }
  bool number_float(number_float_t number, const string_t& text) override {
    if (place_ == Place::kIgnored) return To(Place::kInstance);
    return BeginValue("a number") &&
           Check(columns_.AddReal(column_, number, text)) && EndElement();
  }
  bool string(string_t& text) override {
    if (place_ == Place::kIgnored) return To(Place::kInstance);
    if (place_ == Place::kSignature) {
      request_.signature_name = std::move(text);
      place_ = Place::kTop;
      return true;
    }
    if (place_ == Place::kBinary) return EndBinary(text);
    return BeginValue("a text") &&
           Check(columns_.AddText(column_, std::move(text))) && EndElement();
  }
  bool binary(binary_t& /*bytes*/) override {
    return Refuse("bytes");  // JSON has none
  }

  bool start_object(size_t /*elements*/) override {
    switch (place_) {
      case Place::kBody:
        place_ = Place::kTop;
        return true;
      case Place::kInstances:
        place_ = Place::kInstance;
        return true;
      case Place::kInputsValue:
        place_ = Place::kInputs;
        return true;
      case Place::kColumn:
      case Place::kExamples:
      case Place::kValue:
        if (!BeginValue("an object")) return false;
        place_ = Place::kBinaryKey;
        return true;
      default:
        return Refuse("an object");
    }
  }
  bool key(string_t& name) override {
    switch (place_) {
      case Place::kTop:
        return TopKey(name);
      case Place::kInstance:
        return InstanceKey(name);
      case Place::kInputs:
        return Find(name) && Check(columns_.BeginColumn(column_)) &&
               To(Place::kColumn);
      case Place::kBinaryKey:
        if (name == kBinaryKey) return To(Place::kBinary);
        return Refuse(absl::StrCat("an object with the key ", Shown(name),
                                   "; only {\"b64\": \"…\"} is a value"));
      default:
        return Refuse(absl::StrCat("the key ", Shown(name)));
    }
  }
  bool end_object() override {
    switch (place_) {
      case Place::kTop:
        return To(Place::kEnd);
      case Place::kInstance:
        return Check(columns_.EndExample()) && To(Place::kInstances);
      case Place::kBinaryEnd:
        place_ = Place::kValue;
        return EndElement();
      case Place::kBinaryKey:
        return Refuse("an empty object");
      case Place::kInputs:
        return To(Place::kTop);
      default:
        return Refuse("the end of an object");
    }
  }

  bool start_array(size_t /*elements*/) override {
    switch (place_) {
      case Place::kInstancesValue:
        return To(Place::kInstances);
      case Place::kInputsValue:
        if (!TakeOnlyColumn() || !Check(columns_.BeginColumn(column_))) {
          return false;
        }
        is_bare_ = true;
        return To(Place::kExamples);
      case Place::kColumn:
        return To(request_.is_rows ? Place::kValue : Place::kExamples) &&
               (!request_.is_rows || BeginList());
      case Place::kInstances:
      case Place::kExamples:
      case Place::kValue:
        return BeginValue("a list") && OpenList();
      default:
        return Refuse("a list");
    }
  }
  bool end_array() override {
    switch (place_) {
      case Place::kInstances:
        return To(Place::kTop);
      case Place::kExamples:
        return To(is_bare_ ? Place::kTop : Place::kInputs);
      case Place::kValue:
        if (!value_.Close()) return Ragged();
        return value_.is_open() || EndValue();
      default:
        return Refuse("the end of a list");
    }
  }

  bool parse_error(size_t position, const std::string& /*last*/,
                   const nlohmann::json::exception& error) override {
    constexpr int kOutOfRange = 406;
    if (error.id == kOutOfRange) {
      return Fail(
          absl::StrCat("a number near byte ", position, " is beyond float64"));
    }
    const absl::string_view what = error.what();
    const size_t begin = std::min(what.find("syntax error"), what.size());
    return Fail(absl::StrCat("not JSON at byte ", position, ": ",
                             what.substr(begin, kMaxReasonBytes)));
  }

 private:
  // The place in the body whose next token is read.
  enum class Place {
    kBody,
    kTop,
    kSignature,
    kInstancesValue,  // behind "instances":
    kInstances,       // in its list
    kInstance,        // in the object of an example
    kInputsValue,     // behind "inputs":
    kInputs,          // in its object
    kColumn,          // behind an input's name
    kExamples,        // in an input's list of examples
    kValue,           // in an example's value of a column
    kBinaryKey,       // in {"b64": …}
    kBinary,
    kBinaryEnd,
    kIgnored,  // behind the name of a column that is not read
    kEnd,
  };

  static std::string Shown(absl::string_view text) {
    return absl::StrCat("\"", ShownText(text), "\"");
  }

  bool To(Place place) {
    place_ = place;
    return true;
  }
  bool Fail(absl::string_view what) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(what);
    }
    return false;
  }
  bool Check(const absl::Status& status) {
    if (!status.ok() && status_.ok()) status_ = status;
    return status.ok();
  }
  // Says what stands where it must not.
  bool Refuse(absl::string_view what) {
    switch (place_) {
      case Place::kBody:
        return Fail(absl::StrCat("the body is ", what, ", not an object"));
      case Place::kInstancesValue:
        return Fail(absl::StrCat("\"instances\" is ", what,
                                 "; give a list with an element for each "
                                 "example"));
      case Place::kInputsValue:
        return Fail(absl::StrCat("\"inputs\" is ", what,
                                 "; give an object of the inputs' lists"));
      case Place::kSignature:
        return Fail(absl::StrCat("\"signature_name\" is ", what, ", no text"));
      case Place::kInstance:
      case Place::kColumn:
      case Place::kValue:
      case Place::kExamples:
      case Place::kBinaryKey:
      case Place::kBinary:
      case Place::kBinaryEnd:
        return Fail(absl::StrCat("input ", ColumnName(), " is ", what));
      default:
        return Fail(absl::StrCat(what, " is out of place"));
    }
  }
  bool Ragged() {
    return Fail(absl::StrCat("input ", ColumnName(), " of example ",
                             columns_.ended(column_),
                             ": its lists have different lengths or depths, "
                             "or are deeper than ",
                             NestedValue::kMaxDepth));
  }
  const std::string& ColumnName() const {
    return columns_.form().columns()[column_].name;
  }

  bool TopKey(const std::string& name) {
    if (name == "signature_name") return To(Place::kSignature);
    if (name != "instances" && name != "inputs") {
      return Fail(absl::StrCat("the body's key ", Shown(name),
                               " is not instances, inputs or signature_name"));
    }
    if (has_examples_) {
      return Fail("the body has \"instances\" or \"inputs\" twice");
    }
    has_examples_ = true;
    request_.is_rows = name == "instances";
    return To(request_.is_rows ? Place::kInstancesValue : Place::kInputsValue);
  }
  bool InstanceKey(const std::string& name) {
    if (columns_.Find(name).ok()) return Find(name) && To(Place::kColumn);
    if (name == kBinaryKey && columns_.OnlyColumn().ok()) {
      // The only input's value, without its name.
      column_ = 0;
      is_bare_binary_ = true;
      value_.Begin();
      return To(Place::kBinary);
    }
    if (columns_.IsIgnored(name)) return To(Place::kIgnored);
    return Find(name);
  }
  bool Find(const std::string& name) {
    const absl::StatusOr<size_t> found = columns_.Find(name);
    if (found.ok()) column_ = *found;
    return Check(found.status());
  }
  bool TakeOnlyColumn() {
    const absl::StatusOr<size_t> only = columns_.OnlyColumn();
    if (only.ok()) column_ = *only;
    return Check(only.status());
  }

  // Goes to a place in a column's value, for a token that is `what`.
  bool BeginValue(absl::string_view what) {
    switch (place_) {
      case Place::kInstances:
        if (!TakeOnlyColumn()) return false;
        is_bare_ = true;
        break;
      case Place::kColumn:
        if (!request_.is_rows) {
          return Refuse(absl::StrCat(
              what, "; give a list with a value for each example"));
        }
        break;
      case Place::kExamples:
        break;
      case Place::kValue:
        return true;
      default:
        return Refuse(what);
    }
    outer_ = place_;
    value_.Begin();
    return To(Place::kValue);
  }
  bool BeginList() {
    outer_ = Place::kColumn;
    value_.Begin();
    return OpenList();
  }
  bool OpenList() { return value_.Open() || Ragged(); }
  bool EndElement() {
    if (!value_.Element()) return Ragged();
    return value_.is_open() || EndValue();
  }
  bool EndValue() {
    return Check(columns_.EndValue(column_, value_.shape())) && LeaveValue();
  }
  bool LeaveValue() {
    if (outer_ == Place::kColumn) return To(Place::kInstance);
    if (outer_ == Place::kInstances && !Check(columns_.EndExample())) {
      return false;
    }
    return To(outer_);
  }
  bool EndBinary(const std::string& text) {
    std::string bytes;
    if (!absl::Base64Unescape(text, &bytes)) {
      return Refuse(
          absl::StrCat("{\"b64\": ", Shown(text), "}, which is not Base64"));
    }
    if (!Check(columns_.AddText(column_, std::move(bytes)))) return false;
    if (!is_bare_binary_) return To(Place::kBinaryEnd);
    is_bare_binary_ = false;
    return Check(columns_.EndValue(column_, std::vector<int64_t>())) &&
           To(Place::kInstance);
  }

  RequestColumns& columns_;
  absl::Status status_;
  JsonRequest request_;
  bool has_examples_ = false;
  Place place_ = Place::kBody;
  size_t column_ = 0;
  bool is_bare_ = false;  // values come without the name of their column
  bool is_bare_binary_ = false;
  Place outer_ = Place::kBody;  // the place to go back to behind a value
  NestedValue value_;
};

}  // namespace

absl::StatusOr<JsonRequest> ParseJsonRequest(absl::string_view body,
                                             RequestColumns& columns) {
  RequestReader reader(columns);
  nlohmann::json::sax_parse(body.begin(), body.end(), &reader);
  return std::move(reader).Result();
}

}  // namespace parasol
