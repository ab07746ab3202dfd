#ifndef PARASOL_ML_DEVICE_ELEMENTS_H_
#define PARASOL_ML_DEVICE_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/log.h"

namespace parasol {

// Type of the elements of an array between layers.
enum class EdgeType { kFloat32, kBfloat16 };

// An element of type kBfloat16: the upper half of a float.
struct Bfloat16 {
  uint16_t bits;
};

template <typename T>
inline constexpr EdgeType kEdgeTypeOf =
    std::is_same_v<std::remove_const_t<T>, Bfloat16> ? EdgeType::kBfloat16
                                                     : EdgeType::kFloat32;

inline int64_t BytesOf(EdgeType type) {
  return type == EdgeType::kBfloat16 ? sizeof(Bfloat16) : sizeof(float);
}

// Address of the first of an array's elements, which are `Byte` apart from
// their type: std::byte, or const std::byte if they are only read. Converts to
// the address of floats by itself, so that code that knows no other type needs
// no change; elements of another type end the program then.
template <typename Byte>
class BasicElements {
  static constexpr bool kIsConst = std::is_const_v<Byte>;
  template <typename T>
  using Of = std::conditional_t<kIsConst, const T, T>;

 public:
  BasicElements() = default;
  BasicElements(std::nullptr_t) {}  // NOLINT: a null address has any type
  BasicElements(Of<float>* data)    // NOLINT
      : BasicElements(EdgeType::kFloat32, data) {}
  BasicElements(Of<Bfloat16>* data)  // NOLINT
      : BasicElements(EdgeType::kBfloat16, data) {}
  template <typename Other>
  requires(kIsConst && !std::is_const_v<Other>)
      BasicElements(const BasicElements<Other>& other)  // NOLINT
      : BasicElements(other.type(), other.data()) {}
  BasicElements(EdgeType type, Of<void>* data)
      : type_(type), data_(static_cast<Byte*>(data)) {}

  EdgeType type() const { return type_; }
  Of<void>* data() const { return data_; }

  // Returns the address of elements that are of type T, or null.
  template <typename T>
  Of<T>* As() const {
    CHECK(data_ == nullptr || type_ == kEdgeTypeOf<T>)
        << "the elements are of type " << static_cast<int>(type_);
    return reinterpret_cast<Of<T>*>(data_);
  }
  operator Of<float>*() const { return As<float>(); }  // NOLINT

  friend bool operator==(const BasicElements& elements, std::nullptr_t) {
    return elements.data_ == nullptr;
  }

 private:
  EdgeType type_ = EdgeType::kFloat32;
  Byte* data_ = nullptr;
};

using Elements = BasicElements<std::byte>;
using ConstElements = BasicElements<const std::byte>;

// Returns body.operator()<T>() for the T of the type.
template <typename Body>
auto WithEdgeType(EdgeType type, const Body& body) {
  return type == EdgeType::kBfloat16 ? body.template operator()<Bfloat16>()
                                     : body.template operator()<float>();
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_ELEMENTS_H_
