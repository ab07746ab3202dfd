#ifndef PARASOL_BASE_STATUS_MACROS_H_
#define PARASOL_BASE_STATUS_MACROS_H_

#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// RETURN_IF_ERROR(expr) << "what this hop knows";
//
//   Evaluates `expr` (absl::Status). On an error the enclosing function returns
//   it, with the streamed words put in front: "what this hop knows: message".
//   Code and payloads are kept.
//
// ASSIGN_OR_RETURN(lhs, expr);
// ASSIGN_OR_RETURN(lhs, expr, _ << "what this hop knows");
//
//   Moves the value of `expr` (absl::StatusOr) into `lhs`, which may declare a
//   variable. On an error the enclosing function returns it, as above. Expands
//   to several statements: brace it after an `if`.
#define RETURN_IF_ERROR(expr)                                         \
  if (::parasol::internal::StatusAnnotator parasol_annotator((expr)); \
      parasol_annotator.ok()) {                                       \
  } else /* NOLINT */                                                 \
    return parasol_annotator

#define ASSIGN_OR_RETURN(...)                                      \
  PARASOL_PICK_(__VA_ARGS__, PARASOL_ASSIGN_3_, PARASOL_ASSIGN_2_) \
  (PARASOL_CONCAT_(parasol_statusor_, __LINE__), __VA_ARGS__)

#define PARASOL_PICK_(_1, _2, _3, macro, ...) macro
#define PARASOL_CONCAT_INNER_(a, b) a##b
#define PARASOL_CONCAT_(a, b) PARASOL_CONCAT_INNER_(a, b)
#define PARASOL_ASSIGN_2_(statusor, lhs, expr) \
  PARASOL_ASSIGN_3_(statusor, lhs, expr, _)
#define PARASOL_ASSIGN_3_(statusor, lhs, expr, annotated)      \
  auto statusor = (expr);                                      \
  if (!statusor.ok()) {                                        \
    ::parasol::internal::StatusAnnotator _(statusor.status()); \
    return annotated;                                          \
  }                                                            \
  lhs = *std::move(statusor)

namespace parasol::internal {

// A status and the words to put in front of its message; converts to the
// annotated absl::Status or to any absl::StatusOr.
class StatusAnnotator {
 public:
  explicit StatusAnnotator(absl::Status status) : status_(std::move(status)) {}

  bool ok() const { return status_.ok(); }

  template <typename T>
  StatusAnnotator&& operator<<(const T& words) {
    if (!words_.has_value()) words_.emplace();
    *words_ << words;
    return std::move(*this);
  }

  // Consumes it, though it is not &&: nvcc does not see a returned local
  // variable as one that may be moved from.
  operator absl::Status() { return Annotated(); }  // NOLINT

 private:
  absl::Status Annotated() {
    if (!words_.has_value()) return std::move(status_);
    std::string words = std::move(*words_).str();
    if (words.empty()) return std::move(status_);
    absl::Status annotated(status_.code(),
                           words + ": " + std::string(status_.message()));
    status_.ForEachPayload(
        [&annotated](absl::string_view url, const absl::Cord& payload) {
          annotated.SetPayload(url, payload);
        });
    return annotated;
  }

  absl::Status status_;
  // Stream of the words, created with the first of them: a stream costs half a
  // microsecond, and nearly every status is OK.
  std::optional<std::ostringstream> words_;
};

}  // namespace parasol::internal

#endif  // PARASOL_BASE_STATUS_MACROS_H_
