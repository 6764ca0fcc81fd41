// A vjp with the wrong sign is found, for the operators of which the node suite has no case (scripts/gradcheck.sh flips the others).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/flipped_vjp.h"
#include "tests/decoders/one_node.h"

namespace zeroplan {
namespace {

struct Family {
  const char* op;
  OneNode node;
};

std::vector<Family> families() {
  const HostTensor x = random_reals({3, 4, 2}), channels = random_reals({4}, 0.5, 2, 2), heads = random_reals({2, 2, 3, 4}, -2, 2, 3);
  std::vector<Family> all;
  all.push_back({"attention", OneNode("Attention", 24).input(heads).input(heads).input(heads)});
  all.push_back({"rms_norm", OneNode("RMSNormalization", 23).input(x).input(random_reals({2}, 0.5, 2, 4))});
  all.push_back({"layer_norm", OneNode("LayerNormalization").input(x).input(random_reals({2}, 0.5, 2, 4))});
  all.push_back({"dropout", OneNode("Dropout").input(x).constant(reals({}, {0.25})).constant(booleans({}, {1}))});
  OneNode batch = OneNode("BatchNormalization").input(x).input(channels).input(channels).input(channels).input(channels);
  all.push_back({"batch_norm", batch.outputs(1).set("training_mode", 1)});
  return all;
}

TEST(FlippedVjp, IsFoundInEachFamily) {
  for (const Family& family : families()) {
    EXPECT_EQ(family.node.gradient_difference(), "") << family.op;
    const FlippedVjp flipped(family.op);
    EXPECT_THAT(family.node.gradient_difference(), testing::HasSubstr("differences give")) << family.op;
  }
}

}  // namespace
}  // namespace zeroplan
