#ifndef PARASOL_BASE_DESCRIPTOR_H_
#define PARASOL_BASE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace parasol {

// The owner of an open file descriptor, or of none (-1). Closes it. Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int get() const { return number_; }
  // Gives the descriptor to the caller.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace parasol

#endif  // PARASOL_BASE_DESCRIPTOR_H_
