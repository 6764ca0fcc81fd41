#pragma once
// A walk over the wire format of a model: limits are checked and weights located before protobuf builds anything.
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zeroplan {

// Fields of TensorProto that hold numbers.
inline constexpr int kFloatData = 4, kInt32Data = 5, kRawData = 9, kDoubleData = 10;

// Contents of one tensor in the file: raw_data, or packed float_data, double_data or int32_data (which holds varints).
struct TensorPayload {
  int64_t offset = 0;
  int64_t length = 0;
  int field = 0;          // of TensorProto
  bool stripped = false;  // left out of WireModel::stripped
};

// Place of a tensor: indices of node and attribute for each graph that it lies inside, then that of the initializer, or of the node
// and the attribute that hold it.
using TensorPath = std::vector<int>;

struct WireModel {
  std::string stripped;                       // the message without the payloads of kStripBytes or more in the graph and its subgraphs
  std::map<int, TensorPayload> initializers;  // by index in graph.initializer
  std::map<std::pair<int, int>, TensorPayload> attributes;  // by index in graph.node and in node.attribute
  std::map<TensorPath, TensorPayload> nested;               // inside subgraphs
  const TensorPayload* find(const TensorPath& path) const;  // nullptr: its data lies in no one piece
};

// Iterative, time and memory linear in the file. Throws Error where the bytes are no model or break a limit (limits.h).
WireModel walk_model(std::span<const std::byte> file);

}  // namespace zeroplan
