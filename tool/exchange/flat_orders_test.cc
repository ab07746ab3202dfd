#include "tool/exchange/flat_orders.h"

#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::map<std::string, RowOrder> OrdersOf(const std::string& text) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  model.mutable_loss()->mutable_mean_squared_error();
  const auto graph = ResolveGraph(model);
  EXPECT_OK(graph);
  return graph.ok() ? ChannelsFirstOrders(model, *graph)
                    : std::map<std::string, RowOrder>();
}

TEST(FlatOrdersTest, ADenseLayerBehindAnImageHasItsRowsByPixel) {
  // Pixel (0, 1) of channel 0 is element 2 here, and 1 there.
  EXPECT_THAT(
      OrdersOf("input_shape: [1, 2, 2] "
               "layer { name: 'flat' flatten {} } "
               "layer { name: 'hidden' dense { units: 3 activation: RELU } } "
               "layer { name: 'out' dense { units: 1 } }"),
      ElementsAre(Pair("hidden/kernel", ElementsAre(0, 2, 1, 3))));
}

TEST(FlatOrdersTest, ConvolutionsAndPoolingSayTheShape) {
  const auto orders = OrdersOf(
      "input_shape: [4, 4, 1] "
      "layer { name: 'c' conv2d { filters: 3 kernel_size: 3 padding: SAME } } "
      "layer { name: 'p' max_pool { pool_size: 2 } } "
      "layer { name: 'r' reshape { shape: [12] } } "
      "layer { name: 'd' dropout { rate: .5 } } "
      "layer { name: 'bn' batch_normalization {} } "
      "layer { name: 'out' dense { units: 1 } }");
  const auto by_pixel = ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
  EXPECT_THAT(orders, UnorderedElementsAre(Pair("bn/gamma", by_pixel),
                                           Pair("bn/beta", by_pixel),
                                           Pair("bn/moving_mean", by_pixel),
                                           Pair("bn/moving_variance", by_pixel),
                                           Pair("out/kernel", by_pixel)));
}

TEST(FlatOrdersTest, OneChannelOrOnePixelHasTheSameOrder) {
  for (const char* const input : {"[4, 4, 1]", "[1, 1, 5]", "[6]", "[2, 3]"}) {
    EXPECT_THAT(OrdersOf("input_shape: " + std::string(input) +
                         " layer { name: 'f' flatten {} } "
                         "layer { name: 'out' dense { units: 1 } }"),
                IsEmpty())
        << input;
  }
  EXPECT_THAT(OrdersOf("input_shape: [4, 4, 3] "
                       "layer { name: 'g' global_average_pool {} } "
                       "layer { name: 'out' dense { units: 1 } }"),
              IsEmpty());
}

TEST(FlatOrdersTest, PartsOfAConcatenationKeepTheirOrders) {
  EXPECT_THAT(
      OrdersOf("input { name: 'image' dense { shape: [1, 2, 2] } } "
               "input { name: 'more' dense { shape: [2] } } "
               "layer { name: 'f' input: 'image' flatten {} } "
               "layer { name: 'all' input: ['more', 'f'] concatenate {} } "
               "layer { name: 'out' dense { units: 1 } }"),
      ElementsAre(Pair("out/kernel", ElementsAre(0, 1, 2, 4, 3, 5))));
}

TEST(FlatOrdersTest, BehindOtherLayersTheOrderIsNotKnown) {
  EXPECT_THAT(OrdersOf("input_shape: [1, 2, 2] "
                       "layer { name: 'f' flatten {} } "
                       "layer { name: 'x' cross {} } "
                       "layer { name: 'out' dense { units: 1 } }"),
              UnorderedElementsAre(Pair("x/kernel", IsEmpty()),
                                   Pair("x/bias", IsEmpty()),
                                   Pair("out/kernel", IsEmpty())));
}

}  // namespace
}  // namespace parasol
