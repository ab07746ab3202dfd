#ifndef PARASOL_CLUSTER_JOB_SYNTAX_JOB_TEXT_H_
#define PARASOL_CLUSTER_JOB_SYNTAX_JOB_TEXT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/text_format.h"
#include "proto/job.pb.h"

namespace parasol {

// A place in a job file; lines and columns count from 1.
struct TextPlace {
  int line = 0;
  int column = 0;
};

// A part of a job file, as offsets of bytes.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;  // behind the last byte
};

// A fault of the text itself: a field that does not exist, a value that is none
// of its field's.
struct TextFault {
  TextPlace place;
  std::string message = {};  // one line, with the name that may be meant
};

// A job file's text with all that is wrong with it as a text.
class JobText {
 public:
  // Parses `text` as far as it goes: where it is clear which name is meant,
  // with that one; otherwise without the field at fault.
  static JobText Parse(std::string text);

  // Returns the faults in the order of the text.
  const std::vector<TextFault>& faults() const { return faults_; }
  // The job with what was meant, without defaults; nullopt if the text is not
  // made of fields at all: a brace is missing, say.
  const std::optional<job::Job>& job() const { return job_; }

  // Returns the place of the field that `path` ("model.layer[1].dense.units")
  // names, or else of the innermost message around it that the text has;
  // nullopt if it has none. Anything behind the path is left out.
  std::optional<TextPlace> PlaceOf(absl::string_view path) const;

  // Returns the offset of the closing brace of the message that `path` names,
  // where fields may be added; nullopt if the text has none, or a fault.
  std::optional<size_t> CloseOf(absl::string_view path) const;

  // Returns the field that `path` names, from its name to the end of its value;
  // nullopt if the text has none, or a fault. A list in brackets is one field:
  // its first element has the range of all.
  std::optional<TextRange> FieldAt(absl::string_view path) const;

  // Returns true if the field that `path` names is one at fault, or the message
  // around it was: faults found there are consequences.
  bool IsAtFault(absl::string_view path) const;

 private:
  struct Edit {
    TextPlace place;  // behind it columns differ
    int longer = 0;   // bytes
  };

  // Parses once. Returns the place, from 0, of the parser's first error.
  std::optional<TextPlace> ParseOnce(std::string& message);
  // Takes the fault at or before `at` out of the text; false if that is not
  // possible.
  bool Mend(const TextPlace& at, const std::string& message);
  TextPlace Original(TextPlace place) const;
  // Offset of a place from 0.
  size_t OffsetOf(
      const google::protobuf::TextFormat::ParseLocation& place) const;
  // The range of the field that `path` names, or of the innermost message
  // around it; `is_whole` says which.
  std::optional<google::protobuf::TextFormat::ParseLocationRange> RangeOf(
      absl::string_view path, bool& is_whole) const;

  std::string text_;
  std::vector<TextFault> faults_;
  std::optional<job::Job> job_;
  std::vector<Edit> edits_;
  std::vector<size_t> mended_;      // offsets of names
  std::vector<std::string> paths_;  // paths of fields that were left out
  std::unique_ptr<google::protobuf::TextFormat::ParseInfoTree> places_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_SYNTAX_JOB_TEXT_H_
