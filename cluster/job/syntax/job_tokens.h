#ifndef PARASOL_CLUSTER_JOB_SYNTAX_JOB_TOKENS_H_
#define PARASOL_CLUSTER_JOB_SYNTAX_JOB_TOKENS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace parasol {

// The tokens of a job file, to find the field that a parser's error is about.
// Lines and columns count from 0, columns as the parser counts them.
class JobTokens {
 public:
  struct Field {
    std::string name = {};
    // Path from the job, "model.layer[1].dense.units".
    std::string path = {};
    // The message that should have the field.
    const google::protobuf::Descriptor* message = nullptr;
    int line = 0;  // place of the name
    int column = 0;
    size_t offset = 0;       // offset of the name's first byte
    size_t end = 0;          // offset behind the value and a separator
    std::string value = {};  // a word or a number; empty: something else
    size_t value_offset = 0;
  };

  explicit JobTokens(const std::string& text);

  // Returns the field at fault, given the place of the token at which a parser
  // stopped: the value, the token behind it, or the one behind the name.
  // nullopt if there is none, as when braces do not match.
  std::optional<Field> FieldAt(int line, int column) const;

  // Returns `text`, which the tokens are of, with lists of messages in brackets
  // that are called `name` as fields of their own: "name: [{a: 1}, {a: 2}]"
  // becomes "name {a: 1} name {a: 2}", with the blanks and comments between.
  std::string Unbracketed(std::string text, absl::string_view name) const;

 private:
  struct Token {
    std::string text;
    bool is_name = false;
    bool is_string = false;
    int line = 0;
    int column = 0;
    size_t offset = 0;
  };

  bool Is(size_t token, char symbol) const;
  // True if a field begins with the token: a name, then its value.
  bool BeginsField(size_t token) const;
  // True if the token is the value of a field without the colon between.
  bool LacksColon(size_t value) const;
  // The token behind the value of the field that begins with `name`.
  size_t EndOfField(size_t name) const;
  bool FindMessage(size_t name, Field& field) const;

  std::vector<Token> tokens_;
  bool is_balanced_ = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_SYNTAX_JOB_TOKENS_H_
