#ifndef PARASOL_STORAGE_TENSOR_FILES_PICKLE_H_
#define PARASOL_STORAGE_TENSOR_FILES_PICKLE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// A value of a pickle. Nothing that the pickle names is looked up or called: a
// call is what it was called with.
struct PickleValue {
  enum class Kind {
    kNone,    // also numbers that are not whole, and bytes
    kNumber,  // whole, or a truth value
    kText,
    kSequence,    // a tuple, list or set: `items`
    kDictionary,  // `items`, each key before its value
    kGlobal,      // a function or class by its name, `text`: "torch.device"
    kCall,        // `items`: what is called, its arguments
    kPersistent,  // `items`: what stands for an object that is elsewhere
  };

  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string text = {};
  // Values may be in several places, and in themselves.
  std::vector<const PickleValue*> items = {};
};

// A pickle and all values in it. Move-only.
class Pickle {
 public:
  // Reads a pickle of protocol 2 to 5.
  //   DataLoss  the bytes are none, or have an instruction that only other
  //             things than tensors, numbers, texts and collections need.
  static absl::StatusOr<Pickle> Parse(absl::string_view bytes);

  const PickleValue& top() const { return *top_; }

 private:
  Pickle(std::deque<PickleValue> values, const PickleValue* top)
      : values_(std::move(values)), top_(top) {}

  std::deque<PickleValue> values_;  // addresses stay
  const PickleValue* top_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_PICKLE_H_
