// Draws the vectors of quantile.textproto: train.fvecs and test.fvecs in the
// directory that is its only argument. Of a vector x, uniform in [-1, 1]⁴, the
// label is x₀ + 2·x₁·x₂ + (1 + x₃)·e, with e from the normal distribution.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>

namespace {

constexpr int32_t kWidth = 5;

bool Write(const std::string& path, int vectors, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::normal_distribution<float> normal;
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < vectors; ++i) {
    float vector[kWidth];
    for (int j = 0; j + 1 < kWidth; ++j) vector[j] = uniform(random);
    vector[kWidth - 1] = vector[0] + 2 * vector[1] * vector[2] +
                         (1 + vector[3]) * normal(random);
    file.write(reinterpret_cast<const char*>(&kWidth), sizeof kWidth);
    file.write(reinterpret_cast<const char*>(vector), sizeof vector);
  }
  file.close();
  if (file) return true;
  fprintf(stderr, "make_vectors: %s can't be written\n", path.c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: make_vectors DIRECTORY\n");
    return 2;
  }
  const std::string directory = argv[1];
  const bool is_written = Write(directory + "/train.fvecs", 10000, 1) &&
                          Write(directory + "/test.fvecs", 5000, 2);
  return is_written ? 0 : 1;
}
