#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/multiversion.h"
#include "ml/device/parallel.h"
#include "ml/kernel/image/pooling.h"

namespace parasol::cpu {
namespace {

// Elements of x to a thread.
constexpr int64_t kGrain = 1 << 14;

// A row of windows is worked on position by position: first what all of them
// have at their upper left, and so on. These are the pixels at one position,
// every few in a row of the image.
struct Pixels {
  int64_t count;
  int64_t step;  // from one to the next, in elements
  int64_t channels;

  int64_t size() const { return count * channels; }
  bool contiguous() const { return step == channels; }
};

// Calls body(channels) with few channels as a constant, for which the compiler
// writes some moves instead of a loop or a call of memcpy().
template <typename Body>
void WithChannels(int64_t channels, Body body) {
  switch (channels) {
    case 1:
      return body(std::integral_constant<int64_t, 1>());
    case 3:
      return body(std::integral_constant<int64_t, 3>());
    case 6:
      return body(std::integral_constant<int64_t, 6>());
    case 8:
      return body(std::integral_constant<int64_t, 8>());
    case 16:
      return body(std::integral_constant<int64_t, 16>());
    default:
      return body(channels);
  }
}

// The pixels at `x` one after the other: in `room` unless they are already.
const float* Gather(const Pixels& pixels, const float* __restrict x,
                    float* __restrict room) {
  if (pixels.contiguous()) return x;
  WithChannels(pixels.channels, [&](auto channels) {
    float* __restrict to = room;
    const float* __restrict from = x;
    for (int64_t i = 0; i < pixels.count; ++i) {
      for (int64_t c = 0; c < channels; ++c) to[c] = from[c];
      from += pixels.step;
      to += channels;
    }
  });
  return room;
}

// Adds values[0, pixels.size()) to the pixels at `x`.
void ScatterAdd(const Pixels& pixels, const float* __restrict values,
                float* __restrict x) {
  WithChannels(pixels.channels, [&](auto channels) {
    const float* __restrict from = values;
    float* __restrict to = x;
    for (int64_t i = 0; i < pixels.count; ++i) {
      for (int64_t c = 0; c < channels; ++c) to[c] += from[c];
      from += channels;
      to += pixels.step;
    }
  });
}

// Not std::max(), which loses NaN.
PARASOL_MULTIVERSION
void TakeLarger(const float* x, int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    const float value = x[i];
    const float largest = y[i];
    y[i] = (value > largest) | (value != value) ? value : largest;
  }
}

// Moves dy to `gradients` where x is the largest of a window that is not closed
// yet, and closes it.
PARASOL_MULTIVERSION
void TakeGradients(const float* x, const float* y, const float* dy,
                   int64_t size, int32_t* closed, float* gradients) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) {
    const int32_t largest = (x[i] == y[i]) | (x[i] != x[i]);
    const float gradient = dy[i];
    gradients[i] = (largest & ~closed[i]) != 0 ? gradient : 0;
    closed[i] |= largest;
  }
}

PARASOL_MULTIVERSION
void Add(const float* x, int64_t size, float* y) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y[i] += x[i];
}

PARASOL_MULTIVERSION
void Multiply(const float* x, const float* y, float factor, int64_t size,
              float* product) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) product[i] = x[i] * y[i] * factor;
}

class CpuPooling : public Pooling {
 public:
  CpuPooling(Device& device, const PoolingShape& shape)
      : device_(device),
        s_(shape),
        row_(shape.width.output * shape.channels),
        share_(row_),
        rooms_(PartsOf(device, shape.examples, Examples())) {
    for (Room& room : rooms_) {
      room.x.resize(row_);
      room.gradients.resize(row_);
      room.closed.resize(row_);
    }
    for (int64_t l = 0; l < s_.width.window; ++l) {
      const int64_t last = s_.width.LastInside(l) * s_.channels;
      for (int64_t i = s_.width.FirstInside(l) * s_.channels; i < last; ++i) {
        share_[i] += 1;
      }
    }
    for (float& share : share_) share = 1 / share;
  }

  absl::Status Forward(ConstElements x, Elements y) override {
    const float* const images = x;
    float* const outputs = y;
    ForEachRow([&](Room& room, int64_t n, int64_t i) {
      float* const out = outputs + (n * s_.height.output + i) * row_;
      const bool max = s_.kind == PoolingShape::Kind::kMax;
      std::fill_n(out, row_,
                  max ? -std::numeric_limits<float>::infinity() : 0.0f);
      ForEachPosition(n, i, [&](const Pixels& pixels, int64_t in, int64_t at) {
        const float* const values = Gather(pixels, images + in, room.x.data());
        (max ? TakeLarger : Add)(values, pixels.size(), out + at);
      });
      if (!max) Multiply(out, share_.data(), RowShare(i), row_, out);
    });
    return absl::OkStatus();
  }

  absl::Status InputGradient(ConstElements x, ConstElements y, ConstElements dy,
                             Elements dx) override {
    return InputGradient(x.As<float>(), y.As<float>(), dy.As<float>(),
                         dx.As<float>());
  }

 private:
  // A row of windows', for one thread.
  struct Room {
    std::vector<float> x;
    std::vector<float> gradients;
    std::vector<int32_t> closed;
  };

  absl::Status InputGradient(const float* x, const float* y, const float* dy,
                             float* dx) {
    const bool max = s_.kind == PoolingShape::Kind::kMax;
    ForEachRow([&](Room& room, int64_t n, int64_t i) {
      if (i == 0) ZeroExample(dx, n);
      const int64_t out = (n * s_.height.output + i) * row_;
      max ? ScatterMaxGradients(room, n, i, x, y + out, dy + out, dx)
          : ScatterMeanGradients(room, n, i, dy + out, dx);
    });
    return absl::OkStatus();
  }

  // How many examples are worth a thread.
  int64_t Examples() const { return kGrain * s_.examples / s_.x_size() + 1; }

  void ZeroExample(float* dx, int64_t n) const {
    const int64_t size = s_.x_size() / s_.examples;
    std::fill_n(dx + n * size, size, 0.0f);
  }

  // Calls body(room, n, i) for the rows i of windows of each example n.
  template <typename Body>
  void ForEachRow(Body body) {
    ParallelFor(device_, s_.examples, Examples(),
                [&](int64_t part, int64_t begin, int64_t end) {
                  for (int64_t n = begin; n < end; ++n) {
                    for (int64_t i = 0; i < s_.height.output; ++i) {
                      body(rooms_[part], n, i);
                    }
                  }
                });
  }

  // Calls body(pixels, x, y) for each position in the windows of row i: where
  // the pixels begin in x, and their windows in the row of y.
  template <typename Body>
  void ForEachPosition(int64_t n, int64_t i, Body body) const {
    for (int64_t k = 0; k < s_.height.window; ++k) {
      const int64_t row = s_.height.Pixel(i, k);
      if (row < 0 || row >= s_.height.input) continue;
      const int64_t x =
          (n * s_.height.input + row) * s_.width.input * s_.channels;
      for (int64_t l = 0; l < s_.width.window; ++l) {
        const int64_t first = s_.width.FirstInside(l);
        const int64_t count = s_.width.LastInside(l) - first;
        if (count <= 0) continue;
        body(Pixels{count, s_.width.stride * s_.channels, s_.channels},
             x + s_.width.Pixel(first, l) * s_.channels, first * s_.channels);
      }
    }
  }

  // 1 / (how many rows of the image a window in row i has).
  float RowShare(int64_t i) const {
    const int64_t first = std::max<int64_t>(s_.height.Pixel(i, 0), 0);
    const int64_t end =
        std::min(s_.height.Pixel(i, s_.height.window), s_.height.input);
    return 1.0f / (end - first);
  }

  void ScatterMaxGradients(Room& room, int64_t n, int64_t i, const float* x,
                           const float* y, const float* dy, float* dx) const {
    std::fill(room.closed.begin(), room.closed.end(), 0);
    ForEachPosition(n, i, [&](const Pixels& pixels, int64_t in, int64_t at) {
      TakeGradients(Gather(pixels, x + in, room.x.data()), y + at, dy + at,
                    pixels.size(), room.closed.data() + at,
                    room.gradients.data());
      ScatterAdd(pixels, room.gradients.data(), dx + in);
    });
  }

  void ScatterMeanGradients(Room& room, int64_t n, int64_t i, const float* dy,
                            float* dx) const {
    Multiply(dy, share_.data(), RowShare(i), row_, room.gradients.data());
    ForEachPosition(n, i, [&](const Pixels& pixels, int64_t in, int64_t at) {
      ScatterAdd(pixels, room.gradients.data() + at, dx + in);
    });
  }

  Device& device_;
  const PoolingShape s_;
  const int64_t row_;  // elements of a row of y
  // Share of each element of a row of y: 1 / (number of columns of its window).
  std::vector<float> share_;
  std::vector<Room> rooms_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pooling>> NewPooling(Device& device,
                                                    const PoolingShape& shape) {
  return std::make_unique<CpuPooling>(device, shape);
}

}  // namespace parasol::cpu
