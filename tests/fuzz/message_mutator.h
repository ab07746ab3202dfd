#ifndef PARASOL_TESTS_FUZZ_MESSAGE_MUTATOR_H_
#define PARASOL_TESTS_FUZZ_MESSAGE_MUTATOR_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace parasol {

// Changes valid protobuf messages of any type into others of the same type, as
// a confused process would send them. Deterministic by seed.
class MessageMutator {
 public:
  explicit MessageMutator(uint32_t seed) : random_(seed) {}

  // Returns a number from 0 to `end` - 1.
  size_t Below(size_t end) { return random_() % end; }

  // Strings that a mutated field may get, beside those that the mutator has of
  // its own.
  void AddString(const std::string& value) { strings_.push_back(value); }

  // Changes one field of `message`, or of a message inside it: another number
  // or string, nothing, or one element more, less or twice.
  void Mutate(google::protobuf::Message& message);

 private:
  using Field = google::protobuf::FieldDescriptor;

  uint64_t Edge();
  double RealEdge();
  std::string AnyString();
  void MutateField(google::protobuf::Message& message, const Field& field);
  void MutateRepeated(google::protobuf::Message& message, const Field& field);
  void SetSingle(google::protobuf::Message& message, const Field& field);
  void AddElement(google::protobuf::Message& message, const Field& field);

  std::mt19937 random_;
  std::vector<std::string> strings_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_MESSAGE_MUTATOR_H_
