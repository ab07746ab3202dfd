#include "deploy/local/drawn_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <utility>

namespace parasol {
namespace {

constexpr int kSide = 28;
constexpr int kDigits = 10;

// A digit is written in the unit square, x to the right and y down.
struct Point {
  double x;
  double y;
};
using Stroke = std::vector<Point>;
using Shape = std::vector<Stroke>;

// Part of an ellipse. Degrees, clockwise from the right.
Stroke Arc(Point center, Point radius, double from, double to) {
  constexpr double kDegreesPerSegment = 15;
  const int segments =
      static_cast<int>(std::ceil(std::abs(to - from) / kDegreesPerSegment));
  Stroke stroke;
  for (int i = 0; i <= segments; ++i) {
    const double angle =
        (from + (to - from) * i / segments) * std::numbers::pi / 180;
    stroke.push_back({center.x + radius.x * std::cos(angle),
                      center.y + radius.y * std::sin(angle)});
  }
  return stroke;
}

// Without lifting the pen.
Stroke Then(Stroke first, const Stroke& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Each digit's ways to be written.
const std::array<std::vector<Shape>, kDigits>& Shapes() {
  static const auto& shapes = *new std::array<std::vector<Shape>, kDigits>{{
      {{Arc({.5, .5}, {.3, .45}, 0, 360)},
       {Arc({.5, .5}, {.2, .45}, -60, 310)}},
      {{{{.5, .05}, {.5, .95}}},
       {{{.3, .25}, {.52, .05}, {.52, .95}}},
       {{{.3, .25}, {.52, .05}, {.52, .95}}, {{.3, .95}, {.74, .95}}}},
      {{Then(Arc({.5, .3}, {.28, .25}, 190, 400), {{.2, .95}, {.82, .95}})},
       {Then(Arc({.5, .3}, {.28, .25}, 210, 400),
             {{.22, .9}, {.42, .84}, {.6, .94}, {.85, .9}})}},
      {{Then(Arc({.45, .28}, {.28, .23}, 200, 450),
             Arc({.45, .72}, {.32, .23}, 270, 520))},
       {Then({{.2, .07}, {.75, .07}, {.45, .42}},
             Arc({.45, .68}, {.3, .27}, 270, 510))}},
      {{{{.68, .95}, {.68, .05}, {.15, .65}, {.88, .65}}},
       {{{.25, .08}, {.2, .55}, {.8, .55}}, {{.7, .1}, {.66, .95}}}},
      {{{{.78, .07}, {.3, .07}},
        Then({{.3, .07}, {.26, .46}}, Arc({.47, .66}, {.3, .28}, 225, 510))}},
      {{Then({{.7, .06}, {.45, .2}, {.28, .45}},
             Arc({.5, .7}, {.28, .25}, 180, 540))},
       {Then({{.55, .05}, {.27, .6}}, Arc({.5, .73}, {.25, .22}, 190, 550))}},
      {{{{.18, .08}, {.82, .08}, {.42, .95}}},
       {{{.18, .08}, {.82, .08}, {.42, .95}}, {{.35, .5}, {.78, .5}}}},
      {{Then(Arc({.5, .28}, {.23, .22}, 90, 450),
             Arc({.5, .72}, {.28, .23}, 270, 630))}},
      {{Then(Arc({.5, .3}, {.27, .25}, 0, 360), {{.74, .6}, {.6, .95}})},
       {Then(Arc({.5, .3}, {.25, .25}, 0, 360), {{.75, .95}})}},
  }};
  return shapes;
}

// Random numbers that every standard library draws alike, unlike the
// distributions of <random>.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream)
      : bits_(seed * 0x9e3779b97f4a7c15 + stream) {}

  double Between(double low, double high) {
    return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53;
  }
  double Within(double magnitude) { return Between(-magnitude, magnitude); }
  size_t Below(size_t bound) { return bits_() % bound; }

 private:
  std::mt19937_64 bits_;
};

// How one writer's hand turns the unit square into pixels.
class Hand {
 public:
  explicit Hand(Random& random)
      : angle_(random.Within(.2)),
        slant_(random.Within(.25)),
        width_(random.Between(14, 20)),
        height_(random.Between(17, 22)),
        shift_({random.Within(2.2), random.Within(2.2)}),
        bend_(.05) {
    for (Wave& wave : waves_) {
      wave = {random.Within(6), random.Within(6),
              random.Between(0, 2 * std::numbers::pi)};
    }
  }

  Point Place(Point p) const {
    p = {p.x + bend_ * waves_[0].At(p), p.y + bend_ * waves_[1].At(p)};
    const double x = (p.x - .5) * width_ - slant_ * (p.y - .5) * height_;
    const double y = (p.y - .5) * height_;
    return {
        kSide / 2. + shift_.x + x * std::cos(angle_) - y * std::sin(angle_),
        kSide / 2. + shift_.y + x * std::sin(angle_) + y * std::cos(angle_)};
  }

 private:
  struct Wave {
    double x;
    double y;
    double phase;

    double At(Point p) const { return std::sin(x * p.x + y * p.y + phase); }
  };

  const double angle_;  // radians
  const double slant_;
  const double width_;   // pixels
  const double height_;  // pixels
  const Point shift_;    // pixels
  const double bend_;    // in units of the unit square
  Wave waves_[2];
};

double DistanceToSegment(Point p, Point a, Point b) {
  const Point along = {b.x - a.x, b.y - a.y};
  const double length2 = along.x * along.x + along.y * along.y;
  const double t =
      length2 == 0
          ? 0
          : std::clamp(
                ((p.x - a.x) * along.x + (p.y - a.y) * along.y) / length2, 0.,
                1.);
  return std::hypot(p.x - a.x - t * along.x, p.y - a.y - t * along.y);
}

// Ink of a pixel: 0 to 1.
using Canvas = std::array<double, kSide * kSide>;

// A line with round ends; its edge is one pixel wide.
void DrawSegment(Point a, Point b, double thickness, Canvas& canvas) {
  const double reach = thickness / 2 + 1;
  const auto first = [reach](double u, double v) {
    return std::clamp(static_cast<int>(std::min(u, v) - reach), 0, kSide);
  };
  const auto end = [reach](double u, double v) {
    return std::clamp(static_cast<int>(std::max(u, v) + reach) + 1, 0, kSide);
  };
  for (int y = first(a.y, b.y); y < end(a.y, b.y); ++y) {
    for (int x = first(a.x, b.x); x < end(a.x, b.x); ++x) {
      const double distance = DistanceToSegment({x + .5, y + .5}, a, b);
      double& ink = canvas[y * kSide + x];
      ink = std::max(ink, std::clamp(thickness / 2 + .5 - distance, 0., 1.));
    }
  }
}

void DrawDigit(int digit, Random& random, uint8_t* pixels) {
  const std::vector<Shape>& shapes = Shapes()[digit];
  const Shape& shape = shapes[random.Below(shapes.size())];
  const Hand hand(random);
  const double thickness = random.Between(1.2, 3.2);
  Canvas canvas = {};
  for (const Stroke& stroke : shape) {
    for (size_t i = 1; i < stroke.size(); ++i) {
      DrawSegment(hand.Place(stroke[i - 1]), hand.Place(stroke[i]), thickness,
                  canvas);
    }
  }
  const double ink = random.Between(150, 255);
  const double noise = random.Between(0, 40);
  for (const double covered : canvas) {
    const double pixel = covered * ink + random.Within(noise);
    *pixels++ = static_cast<uint8_t>(std::clamp(pixel, 0., 255.));
  }
}

// In every ten, each digit once.
std::vector<uint8_t> BalancedLabels(int64_t count, uint64_t seed) {
  std::vector<uint8_t> labels(count);
  for (int64_t i = 0; i < count; ++i) {
    labels[i] = static_cast<uint8_t>(i % kDigits);
    const int64_t ten = i - i % kDigits;
    const size_t other = Random(seed, ~i).Below(i - ten + 1);
    std::swap(labels[i], labels[ten + other]);
  }
  return labels;
}

}  // namespace

LabelledImages DrawDigits(int64_t count, uint64_t seed) {
  LabelledImages set;
  set.labels = BalancedLabels(count, seed);
  set.images = {.count = count,
                .height = kSide,
                .width = kSide,
                .pixels = std::vector<uint8_t>(count * kSide * kSide)};
  for (int64_t i = 0; i < count; ++i) {
    Random random(seed, i);
    DrawDigit(set.labels[i], random,
              set.images.pixels.data() + i * kSide * kSide);
  }
  return set;
}

}  // namespace parasol
