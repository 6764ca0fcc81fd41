// QuantizeLinear, DequantizeLinear and their relatives: the numbers of ONNX, and gradients as of fake quantisation in PyTorch.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/conformance/forward.h"
#include "tests/conformance/gradients.h"
#include "tests/decoders/one_node.h"
#include "tests/onnx/evaluate.h"

namespace zeroplan {
namespace {

using testing::HasSubstr;

constexpr DType kByte = DType::u8;

TEST(Quantize, RoundsHalfToEvenAndSaturates) {
  const HostTensor x = reals({9}, {0, 1, 3, 5, -1, -3, 1000, -1000, 2.6}), scale = reals({}, {2});
  EXPECT_EQ(difference(OneNode("QuantizeLinear").input(x).input(scale).input(integers({}, {0}, DType::i8)).value(), {9},
                       {0, 0, 2, 2, 0, -2, 127, -128, 1}),
            "");
  EXPECT_EQ(difference(OneNode("QuantizeLinear").input(x).input(scale).input(integers({}, {128}, kByte)).value(), {9},
                       {128, 128, 130, 130, 128, 126, 255, 0, 129}),
            "");
  EXPECT_EQ(difference(OneNode("QuantizeLinear").input(x).input(reals({}, {0.01})).input(integers({}, {-5}, DType::i16)).value(), {9},
                       {-5, 95, 295, 495, -105, -305, 32767, -32768, 255}),
            "");
  OneNode stated = OneNode("QuantizeLinear").input(x).input(reals({}, {0.01})).set("output_dtype", 4);  // uint16
  EXPECT_EQ(difference(stated.value(), {9}, {0, 100, 300, 500, 0, 0, 65535, 0, 260}), "");
  EXPECT_EQ(stated.value().dtype(), DType::u16);
  EXPECT_EQ(OneNode("QuantizeLinear").input(x).input(scale).value().dtype(), kByte);
}

TEST(Quantize, InfinitiesSaturateToo) {
  const HostTensor x = reals({2}, {INFINITY, -INFINITY});
  EXPECT_EQ(difference(OneNode("QuantizeLinear").input(x).input(reals({}, {1})).value(), {2}, {255, 0}), "");
}

TEST(Quantize, IntegersAreQuantisedToo) {
  const HostTensor x = integers({3}, {-7, 0, 9}, DType::i32);
  EXPECT_EQ(
      difference(OneNode("QuantizeLinear").input(x).input(reals({}, {2})).input(integers({}, {3}, DType::i8)).value(), {3}, {-1, 3, 7}),
      "");
}

struct Layout {
  Shape scale;
  int64_t axis, block;
};

// One number, one per place of an axis from either end, one per block with a last one that is short.
TEST(Quantize, ScalesPerTensorAxisAndBlock) {
  const Shape shape = {2, 5, 3};
  const HostTensor x = random_reals(shape, -300, 300);
  const std::vector<Layout> layouts = {{{}, 1, 0},  {{1}, 1, 0},       {{5}, 1, 0},      {{3}, -1, 0},
                                       {{2}, 0, 0}, {{2, 3, 3}, 1, 2}, {{2, 5, 1}, 2, 3}};
  for (const Layout& layout : layouts) {
    const int64_t count = elements(layout.scale);
    const HostTensor scale = random_reals(layout.scale, 0.5, 4, 3);
    std::vector<int64_t> zeros;
    for (int64_t i = 0; i < count; ++i) zeros.push_back(i * 37 % 100 - 50);
    const HostTensor zero = integers(layout.scale, zeros, DType::i8);
    std::vector<double> quantised, back;
    for (int64_t i = 0; i < x.count(); ++i) {
      int64_t index[3] = {i / 15, i / 3 % 5, i % 3}, at = 0;
      const int64_t axis = layout.axis < 0 ? layout.axis + 3 : layout.axis;
      if (layout.block > 0) {
        index[axis] /= layout.block;
        at = (index[0] * layout.scale[1] + index[1]) * layout.scale[2] + index[2];
      } else if (count > 1) {
        at = index[axis];
      }
      const double number = std::nearbyint(x.get(i) / scale.get(at)) + static_cast<double>(zeros[at]);
      quantised.push_back(std::min(127.0, std::max(-128.0, number)));
      back.push_back((quantised.back() - static_cast<double>(zeros[at])) * scale.get(at));
    }
    OneNode quantize = OneNode("QuantizeLinear").input(x).input(scale).input(zero).set("axis", layout.axis).set("block_size", layout.block);
    EXPECT_EQ(difference(quantize.value(), shape, quantised), "") << to_string(layout.scale);
    OneNode dequantize = OneNode("DequantizeLinear").input(quantize.value()).input(scale).input(zero);
    EXPECT_EQ(difference(dequantize.set("axis", layout.axis).set("block_size", layout.block).value(), shape, back), "")
        << to_string(layout.scale);
  }
}

TEST(Quantize, DequantizeTakesAllItsTypes) {
  const HostTensor scale = reals({}, {0.5});
  const auto back = [&](const HostTensor& x) { return OneNode("DequantizeLinear").input(x).input(scale); };
  EXPECT_EQ(difference(back(integers({2}, {255, 0}, kByte)).input(integers({}, {255}, kByte)).value(), {2}, {0, -127.5}), "");
  EXPECT_EQ(difference(back(integers({2}, {127, -128}, DType::i8)).input(integers({}, {-128}, DType::i8)).value(), {2}, {127.5, 0}), "");
  EXPECT_EQ(difference(back(integers({2}, {65535, 0}, DType::u16)).input(integers({}, {1}, DType::u16)).value(), {2}, {32767, -0.5}), "");
  EXPECT_EQ(difference(back(integers({2}, {32767, -32768}, DType::i16)).value(), {2}, {16383.5, -16384}), "");
  EXPECT_EQ(difference(back(integers({2}, {70000, -3}, DType::i32)).value(), {2}, {35000, -1.5}), "");
}

// Weights of 4 bits, two to a byte, the first in the low bits, in blocks of two rows.
TEST(Quantize, DequantizeReadsNibblesOfAnInitializer) {
  for (const bool with_sign : {true, false}) {
    const int type = with_sign ? onnx::TensorProto::INT4 : onnx::TensorProto::UINT4;
    ModelBuilder model(21);
    model.proto.set_ir_version(10);
    model.output("y", {}).weight("s", {2, 3}, {1, 2, 3, 4, 5, 6});
    const auto add = [&](const std::string& name, const std::vector<int64_t>& dims, const std::string& bytes) {
      onnx::TensorProto& tensor = *model.proto.mutable_graph()->add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(static_cast<onnx::TensorProto::DataType>(type));
      for (const int64_t dim : dims) tensor.add_dims(dim);
      tensor.set_raw_data(bytes);
    };
    add("w", {3, 3}, {'\x10', '\x87', '\xf9', '\x2e', '\x05'});  // 0 1 7 8 9 15 14 2 5
    add("z", {2, 3}, {'\x01', '\x10', '\x3f'});                  // 1 0 0 1 15 3
    ModelBuilder::set(model.node("DequantizeLinear", {"w", "s", "z"}, {"y"}), "block_size", 2);
    ModelBuilder::set(*model.proto.mutable_graph()->mutable_node(0), "axis", 0);
    const TemporaryFolder folder;
    const ModelFile file(model.save(folder.file("m.onnx")));
    const DataSet set{{}, {{"y", 0, {}}}, {}, {}};
    const HostTensor y = evaluate_reference(import_forward(file, set, DType::f64)).at("y");
    const std::vector<double> plain = {-1, 2, 21, 7, 18, 45, 52, -65, 12}, signs = {-1, 2, 21, -9, -14, -3, -12, 15, 12};
    EXPECT_EQ(difference(y, {3, 3}, with_sign ? signs : plain, 0), "") << with_sign;
    onnx::NodeProto& other = *model.proto.mutable_graph()->mutable_node(0);
    other.set_op_type("Identity");
    other.clear_attribute();
    other.mutable_input()->DeleteSubrange(1, 2);
    const ModelFile elsewhere(model.save(folder.file("other.onnx")));
    const std::string name = with_sign ? "tensor 'w' is int4" : "tensor 'w' is uint4";
    EXPECT_THAT(message([&] { import_forward(elsewhere, set, DType::f64); }), HasSubstr(name + ", which is not supported here"));
  }
}

TEST(Quantize, MisfitsAreRefused) {
  const HostTensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(OneNode("QuantizeLinear").input(x).input(reals({2}, {1, 2})).refusal(), HasSubstr("scale of shape [2]"));
  EXPECT_THAT(OneNode("QuantizeLinear").input(x).input(reals({}, {1})).set("output_dtype", 6).refusal(), HasSubstr("quantises to int32"));
  EXPECT_THAT(OneNode("QuantizeLinear").input(x).input(reals({}, {1})).set("output_dtype", 22).refusal(), HasSubstr("quantises to int4"));
  EXPECT_THAT(OneNode("QuantizeLinear").input(x).input(reals({2, 1}, {1, 2})).set("block_size", 2).refusal(), HasSubstr("per block of 2"));
  EXPECT_THAT(OneNode("QuantizeLinear").input(x).input(reals({3}, {1, 2, 3})).input(integers({2}, {1, 2}, kByte)).refusal(),
              HasSubstr("zero point has shape [2]"));
  EXPECT_THAT(OneNode("DequantizeLinear").input(integers({2}, {1, 2})).input(reals({}, {1})).refusal(), HasSubstr("input is int64"));
}

TEST(Quantize, DynamicTakesTheRangeOfItsInput) {
  const auto check = [](const HostTensor& x, const std::vector<double>& y, double scale, double zero) {
    const std::vector<HostTensor> got = OneNode("DynamicQuantizeLinear").input(x).outputs(3).values();
    EXPECT_EQ(difference(got[0], x.shape(), y), "");
    EXPECT_EQ(difference(got[1], {}, {scale}), "");
    EXPECT_EQ(difference(got[2], {}, {zero}), "");
    EXPECT_EQ(got[2].dtype(), kByte);
  };
  check(reals({6}, {0, 2, -3, -2.4, 1.34, 0.5}), {153, 255, 0, 31, 221, 179}, 5.0 / 255, 153);
  check(reals({2, 2}, {1, 2.5, 2, 5}), {51, 128, 102, 255}, 5.0 / 255, 0);
  check(reals({2}, {-1, -4}), {191, 0}, 4.0 / 255, 255);
  check(reals({2}, {0, 0}), {0, 0}, 1, 0);
}

// A model that quantises x {n}, moves the integers and gives numbers again.
struct Chain {
  const char* name;
  void (*moves)(ModelBuilder&);  // from "q" to "m"
  double low = -128;             // of the numbers that keep their gradient
};

HostTensor gradient_of(const ModelBuilder& model, const HostTensor& x) {
  const TemporaryFolder folder;
  const ModelFile file(model.save(folder.file("m.onnx")));
  const DataSet set{{{"x", onnx::TensorProto::FLOAT, x}}, {{"y", 0, {}}}, {}, {}};
  const std::vector<HostTensor> gradients = built_gradients(make_problem(import_forward(file, set, DType::f64)));
  return gradients.at(0);
}

ModelBuilder with_input(const HostTensor& x) {
  ModelBuilder model(21);
  model.proto.set_ir_version(10);
  model.input("x", {std::to_string(x.count())}).output("y", {});
  return model;
}

void add_bytes(ModelBuilder& model, const std::string& name, int8_t value) {
  onnx::TensorProto& tensor = *model.proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT8);
  tensor.set_raw_data(&value, 1);
}

const std::vector<Chain>& chains() {
  static const std::vector<Chain> list = {
      {"nothing", [](ModelBuilder& m) { m.add("Identity", {"q"}, "m"); }},
      {"reshape and transpose",
       [](ModelBuilder& m) {
         m.ints("wide", {2}, {2, 4});
         m.ints("flat", {1}, {-1});
         m.add("Reshape", {"q", "wide"}, "a").add("Transpose", {"a"}, "b").add("Transpose", {"b"}, "c").add("Reshape", {"c", "flat"}, "m");
       }},
      {"concat and slice",
       [](ModelBuilder& m) {
         m.ints("four", {2}, {3, 5});
         ModelBuilder::set(m.node("Split", {"q", "four"}, {"left", "right"}), "axis", 0);
         m.add("Concat", {"left", "right"}, "m", {{"axis", 0}});
       }},
      {"gather",
       [](ModelBuilder& m) {
         m.ints("all", {8}, {0, 1, 2, 3, 4, 5, 6, 7});
         m.add("Gather", {"q", "all"}, "m");
       }},
      {"clip, whose end keeps it",
       [](ModelBuilder& m) {
         add_bytes(m, "least", -124);
         m.add("Clip", {"q", "least"}, "m");
       },
       -124},
      {"three hundred moves",
       [](ModelBuilder& m) {
         m.ints("row", {2}, {1, 8});
         m.ints("flat", {1}, {8});
         m.add("Reshape", {"q", "row"}, "t0");
         for (int i = 0; i < 300; ++i) m.add("Transpose", {"t" + std::to_string(i)}, "t" + std::to_string(i + 1));
         m.add("Reshape", {"t300", "flat"}, "m");
       }},
      {"max pool",
       [](ModelBuilder& m) {
         m.ints("planes", {3}, {1, 1, 8});
         m.ints("flat", {1}, {8});
         m.add("Reshape", {"q", "planes"}, "a");
         ModelBuilder::set(m.node("MaxPool", {"a"}, {"b"}), "kernel_shape", std::vector<int64_t>{1});
         m.add("Reshape", {"b", "flat"}, "m");
       }},
  };
  return list;
}

// A cast to floating point gives the numbers that were rounded, whichever operator says so.
TEST(Quantize, GradientsPassThroughCastsOfTheIntegers) {
  const HostTensor x = reals({4}, {-66.8, -3, 0.2, 90});
  ModelBuilder identity = with_input(x);
  identity.add("Identity", {"x"}, "y");
  const HostTensor weights = gradient_of(identity, x);
  for (const char* op : {"Cast", "CastLike"}) {
    ModelBuilder model = with_input(x);
    model.weight("s", {}, {0.5f});
    add_bytes(model, "z", 5);
    model.add("QuantizeLinear", {"x", "s", "z"}, "q");
    if (op == std::string("Cast"))
      model.add(op, {"q"}, "y", {{"to", onnx::TensorProto::FLOAT}});
    else
      model.add(op, {"q", "s"}, "y");
    const HostTensor gradient = gradient_of(model, x);
    for (int64_t i = 0; i < x.count(); ++i)
      EXPECT_NEAR(gradient.get(i), i == 0 || i == 3 ? 0 : weights.get(i) / 0.5, 1e-12) << op << " " << i;
  }
}

// torch.fake_quantize_per_tensor_affine: 1 where the rounded number lies in the range, ends included, else 0.
TEST(Quantize, GradientsPassStraightThroughWithinTheRange) {
  const HostTensor x = reals({8}, {-66.4, -66.8, -64.3, -3, 0.2, 61.1, 61.3, 90});
  const double scale = 0.5, zero = 5;
  const auto inside = [&](double low) {
    std::vector<bool> list;
    for (int64_t i = 0; i < x.count(); ++i) {
      const double number = std::nearbyint(x.get(i) / scale) + zero;
      list.push_back(number >= low && number <= 127);
    }
    return list;
  };
  ASSERT_EQ(inside(-128), (std::vector<bool>{true, false, true, true, true, true, false, false}));
  ASSERT_EQ(inside(-124), (std::vector<bool>{false, false, true, true, true, true, false, false}));
  ModelBuilder identity = with_input(x);
  identity.add("Identity", {"x"}, "y");
  const HostTensor weights = gradient_of(identity, x);
  for (const Chain& chain : chains()) {
    ModelBuilder model = with_input(x);
    model.weight("s", {}, {static_cast<float>(scale)});
    add_bytes(model, "z", static_cast<int8_t>(zero));
    model.add("QuantizeLinear", {"x", "s", "z"}, "q");
    chain.moves(model);
    model.add("DequantizeLinear", {"m", "s", "z"}, "y");
    const HostTensor gradient = gradient_of(model, x);
    for (int64_t i = 0; i < x.count(); ++i)
      EXPECT_NEAR(gradient.get(i), inside(chain.low)[i] ? weights.get(i) : 0, 1e-12) << chain.name << " " << i;
  }
}

}  // namespace
}  // namespace zeroplan
