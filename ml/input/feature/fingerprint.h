#ifndef PARASOL_ML_INPUT_FEATURE_FINGERPRINT_H_
#define PARASOL_ML_INPUT_FEATURE_FINGERPRINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace parasol {

// The 64-bit fingerprint that hashed columns use. It is the same on every
// machine and in every version, because checkpoints hold rows under it.
//
//   FNV-1a (offset basis cbf29ce484222325, prime 100000001b3) over the parts,
//   each followed by a byte 0, then the finalizer of MurmurHash3, which spreads
//   it over all bits.
//
// The parts of a column are its name and the value; the parts of a cross are
// the names, then the values.
class Fingerprint {
 public:
  Fingerprint& AddPart(absl::string_view part) {
    for (const char c : part) Mix(static_cast<uint8_t>(c));
    Mix(0);
    return *this;
  }

  uint64_t Get() const {
    uint64_t h = state_;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
    return h ^ h >> 33;
  }

 private:
  void Mix(uint8_t byte) { state_ = (state_ ^ byte) * 0x100000001b3; }

  uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_FINGERPRINT_H_
