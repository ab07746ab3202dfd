#ifndef PARASOL_ML_INPUT_TESTING_MUTATED_H_
#define PARASOL_ML_INPUT_TESTING_MUTATED_H_

#include <cstddef>
#include <random>
#include <string>
#include <utility>

namespace parasol {

// Returns the bytes of a file with one to four changes: a byte or a bit of
// another value, a separator, an end that is missing, bytes that are missing,
// bytes that come twice.
inline std::string Mutated(std::string bytes, std::mt19937_64& random) {
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] ^= static_cast<char>(1 << random() % 8);
        break;
      case 2:
        bytes[at] = "\"\n,\t "[random() % 5];
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.erase(at, random() % 8);
        break;
      default:
        bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16));
    }
  }
  return bytes;
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TESTING_MUTATED_H_
