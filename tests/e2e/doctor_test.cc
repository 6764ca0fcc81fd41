// `zeroplan doctor` on quantised, half and random models: what cannot be compared is no finding.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/npy.h"
#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "tests/e2e_support/command.h"
#include "tests/e2e_support/tiny_model.h"
#include "tests/paths/paths.h"

namespace zeroplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kFloat = 1, kFloat16 = 10, kBfloat16 = 16;  // TensorProto.DataType

// Four samples x[N,2], and a shell script in Python's place, which gives what stands in files as what ONNX Runtime gives.
class DoctorTestNoise : public testing::Test {
 protected:
  DoctorTestNoise() : x_(HostTensor::of<float>(DType::f32, {4, 2}, {1, 2, 0.5, 1, -1, 0.5, 2, 0.25})) {
    write_npy(folder_.file("x.npy"), x_);
    write_file(python(), fmt::format("#!/bin/sh\nif [ $# -eq 1 ]; then echo 1.0; exit; fi\ncp {0}/*.npy \"$4\"\ncp \"$1\" {0}/script\n"
                                     "echo \"$5\" > {0}/kernels\n",
                                     given_.path()));
    std::filesystem::permissions(python(), std::filesystem::perms::owner_all);
  }
  std::string python() const { return folder_.file("python"); }
  // What ONNX Runtime gives as the output at `index`.
  void give(int index, const HostTensor& values) const { write_npy(given_.file(fmt::format("{}.npy", index)), values); }
  std::string given(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(given_.file(name)).rdbuf();
    return text.str();
  }
  // x times `factor`.
  HostTensor scaled(double factor) const {
    HostTensor values(DType::f64, x_.shape());
    for (int64_t i = 0; i < x_.count(); ++i) values.set(i, factor * x_.get(i));
    return values;
  }
  Outcome doctor(const TinyModel& model) const {
    model.save(folder_.file("model.onnx"));
    return run_command(fmt::format("{} doctor {} --data {} --batch 4 --micro-batches 1 --python {} --loss \"mse(y, x)\"", kProgram,
                                   folder_.file("model.onnx"), folder_.path(), python()));
  }

  TemporaryFolder folder_, given_;
  HostTensor x_;
};

// y = x · (w rounded to quarters) + b.
TEST_F(DoctorTestNoise, ARoundedParameterIsNotCompared) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 2}).weight("w", {2}, {0.3, 0.3}).weight("b", {2}, {0, 0}).weight("scale", {}, {0.25});
  model.initializer("zero", HostTensor::of(DType::i8, {}, std::vector<int>{0}));
  model.node("QuantizeLinear", {"w", "scale", "zero"}, {"q"}).node("DequantizeLinear", {"q", "scale", "zero"}, {"rounded"});
  model.node("Mul", {"x", "rounded"}, {"xw"}).node("Add", {"xw", "b"}, {"y"}).output("y", {"N", 2});
  give(0, scaled(0.25));
  const Outcome outcome = doctor(model);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("w: not comparable: rounding is passed straight through"),
                                    HasSubstr("b: gradient along a random direction"), Not(HasSubstr("!"))));
  EXPECT_THAT(outcome.output,
              HasSubstr("differs from ONNX Runtime 1.0 (graph optimizations off, as fused integer kernels may saturate) by 0 "));
  EXPECT_EQ(given("kernels"), "plain\n");
  EXPECT_THAT(given("script"), HasSubstr("GraphOptimizationLevel.ORT_DISABLE_ALL"));
}

// y = x · w + float(5 · 2) / 10, the product of integers.
TEST_F(DoctorTestNoise, ProductsOfIntegersAreAskedForExactly) {
  TinyModel model;
  model.input("x", DType::f32, {"N", 2}).weight("w", {2}, {1, 1}).weight("tenth", {}, {0.1});
  model.constant("five", HostTensor::of(DType::u8, {1, 1}, std::vector<int>{5}));
  model.constant("two", HostTensor::of(DType::i8, {1, 1}, std::vector<int>{2}));
  model.node("MatMulInteger", {"five", "two"}, {"product"}).node("Cast", {"product"}, {"ten"}, {{"to", kFloat}});
  model.node("Mul", {"ten", "tenth"}, {"one"}).node("Mul", {"x", "w"}, {"xw"}).node("Mul", {"xw", "one"}, {"y"}).output("y", {"N", 2});
  give(0, scaled(1));
  const Outcome outcome = doctor(model);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("ONNX Runtime 1.0 (session.x64quantprecision on, as other integer kernels may saturate)"));
  EXPECT_EQ(given("kernels"), "exact_integers\n");
  EXPECT_THAT(given("script"), HasSubstr("add_session_config_entry(\"session.x64quantprecision\", \"1\")"));
}

// What does not depend on the random numbers is compared.
TEST_F(DoctorTestNoise, WhatIsDrawnAtRandomIsNotCompared) {
  for (const char* op : {"Dropout", "RandomNormalLike", "RandomUniformLike", "Bernoulli"}) {
    TinyModel model;
    model.input("x", DType::f32, {"N", 2}).weight("w", {2}, {0.5, 0.5}).node("Mul", {"x", "w"}, {"a"});
    model.constant("half", HostTensor::of<float>(DType::f32, {}, {0.5}));
    model.constant("training", HostTensor::of(DType::boolean, {}, std::vector<int>{1}));
    if (op == std::string("Dropout"))
      model.node(op, {"a", "half", "training"}, {"noise"});
    else
      model.node("Sigmoid", {"x"}, {"p"}).node(op, {"p"}, {"noise"});
    model.node("Add", {"a", "noise"}, {"y"}).output("y", {"N", 2}).output("a", {"N", 2});
    give(0, scaled(0));
    give(1, scaled(0.5));
    const Outcome outcome = doctor(model);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr(fmt::format("output 'y': not compared: node 'node_noise' ({}) draws at random", op)),
                                      HasSubstr("output 'a': differs from ONNX Runtime 1.0 by 0 ")));
  }
}

// y = x · w by way of the type `to`.
TEST_F(DoctorTestNoise, AForwardIsComparedAsItsTypeRounds) {
  struct Case {
    int64_t to;
    int bits;  // by 2^-bits ONNX Runtime differs
    bool agrees;
    const char* says;
  };
  for (const Case& c : {Case{kFloat, 11, false, "its largest value is 1"},
                        {kFloat16, 11, true, "; float16 in the file rounds by up to 2^-10 of it"},
                        {kFloat16, 9, false, "; float16 in the file rounds by up to 2^-10 of it"},
                        {kBfloat16, 8, true, "; bfloat16 in the file rounds by up to 2^-7 of it"},
                        {kBfloat16, 6, false, "; bfloat16 in the file rounds by up to 2^-7 of it"}}) {
    TinyModel model;
    model.input("x", DType::f32, {"N", 2}).weight("w", {2}, {0.5, 0.5}).node("Mul", {"x", "w"}, {"a"});
    model.node("Cast", {"a"}, {"b"}, {{"to", c.to}}).node("Cast", {"b"}, {"y"}, {{"to", kFloat}}).output("y", {"N", 2});
    give(0, scaled(0.5 * (1 + std::ldexp(1, -c.bits))));
    const Outcome outcome = doctor(model);
    EXPECT_EQ(outcome.code == 0, c.agrees) << c.to << " " << c.bits << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace zeroplan
