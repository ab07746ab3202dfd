#include "tests/fuzz/message_mutator.h"

#include <iterator>
#include <limits>

namespace parasol {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;

uint64_t MessageMutator::Edge() {
  // Numbers at which lengths, offsets and counts go wrong.
  static constexpr uint64_t kEdges[] = {
      0,          1,          2,         3,          65535,      65536,
      65545,      131072,     INT32_MAX, UINT32_MAX, 1ULL << 32, 1ULL << 40,
      1ULL << 61, 1ULL << 62, INT64_MAX, 1ULL << 63, UINT64_MAX, 1ULL << 31};
  return kEdges[Below(std::size(kEdges))];
}

double MessageMutator::RealEdge() {
  using Limits = std::numeric_limits<double>;
  static constexpr double kEdges[] = {0,
                                      -0.0,
                                      0.5,
                                      1,
                                      -1,
                                      1e300,
                                      -1e300,
                                      Limits::infinity(),
                                      1e-45,
                                      1e38,
                                      -Limits::infinity(),
                                      Limits::quiet_NaN()};
  return kEdges[Below(std::size(kEdges))];
}

std::string MessageMutator::AnyString() {
  static const std::string kStrings[] = {"",
                                         ".",
                                         "..",
                                         "/",
                                         "x",
                                         "../x",
                                         "a/b",
                                         std::string("a\0b", 3),
                                         std::string(5000, 's')};
  const size_t choice = Below(std::size(kStrings) + strings_.size());
  return choice < std::size(kStrings) ? kStrings[choice]
                                      : strings_[choice - std::size(kStrings)];
}

void MessageMutator::Mutate(Message& message) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  if (type.field_count() == 0) return;
  MutateField(message,
              *type.field(static_cast<int>(Below(type.field_count()))));
}

void MessageMutator::MutateField(Message& message, const Field& field) {
  const Reflection& fields = *message.GetReflection();
  if (field.is_repeated()) return MutateRepeated(message, field);
  if (Below(8) == 0) return fields.ClearField(&message, &field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return Mutate(*fields.MutableMessage(&message, &field));
  }
  SetSingle(message, field);
}

void MessageMutator::MutateRepeated(Message& message, const Field& field) {
  const Reflection& fields = *message.GetReflection();
  const int size = fields.FieldSize(message, &field);
  if (size == 0) return AddElement(message, field);
  const int element = static_cast<int>(Below(size));
  switch (Below(8)) {
    case 0:
      return fields.RemoveLast(&message, &field);
    case 1:
      return AddElement(message, field);
    case 2:
      return fields.SwapElements(&message, &field, element,
                                 static_cast<int>(Below(size)));
    default:
      break;
  }
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    fields.RemoveLast(&message, &field);
    return AddElement(message, field);
  }
  if (Below(8) == 0) {
    const std::string twin =
        fields.GetRepeatedMessage(message, &field, element).SerializeAsString();
    fields.AddMessage(&message, &field)->ParseFromString(twin);
    return;
  }
  Mutate(*fields.MutableRepeatedMessage(&message, &field, element));
}

void MessageMutator::SetSingle(Message& message, const Field& field) {
  const Reflection& fields = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return fields.SetInt32(&message, &field, static_cast<int32_t>(Edge()));
    case FieldDescriptor::CPPTYPE_INT64:
      return fields.SetInt64(&message, &field, static_cast<int64_t>(Edge()));
    case FieldDescriptor::CPPTYPE_UINT32:
      return fields.SetUInt32(&message, &field, static_cast<uint32_t>(Edge()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return fields.SetUInt64(&message, &field, Edge());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fields.SetDouble(&message, &field, RealEdge());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return fields.SetFloat(&message, &field, static_cast<float>(RealEdge()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return fields.SetBool(&message, &field, Below(2) == 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      // Numbers that no value has are kept, as a newer process would send them.
      return fields.SetEnumValue(&message, &field, static_cast<int>(Below(9)));
    case FieldDescriptor::CPPTYPE_STRING:
      return fields.SetString(&message, &field, AnyString());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return;
  }
}

void MessageMutator::AddElement(Message& message, const Field& field) {
  const Reflection& fields = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return fields.AddInt32(&message, &field, static_cast<int32_t>(Edge()));
    case FieldDescriptor::CPPTYPE_INT64:
      return fields.AddInt64(&message, &field, static_cast<int64_t>(Edge()));
    case FieldDescriptor::CPPTYPE_UINT32:
      return fields.AddUInt32(&message, &field, static_cast<uint32_t>(Edge()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return fields.AddUInt64(&message, &field, Edge());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fields.AddDouble(&message, &field, RealEdge());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return fields.AddFloat(&message, &field, static_cast<float>(RealEdge()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return fields.AddBool(&message, &field, Below(2) == 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return fields.AddEnumValue(&message, &field, static_cast<int>(Below(9)));
    case FieldDescriptor::CPPTYPE_STRING:
      return fields.AddString(&message, &field, AnyString());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      Mutate(*fields.AddMessage(&message, &field));
      return;
  }
}

}  // namespace parasol
