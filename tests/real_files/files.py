"""The files, what is asked of each, and where they come from."""
import dataclasses

import numpy

# Files without metadata do not say that the basis of their Fourier transform is no weight.
FOURIER = ["--freeze", "forward_basis"]


@dataclasses.dataclass
class File:
    name: str
    wheel: str                   # its distribution, as its folder is called
    path: str                    # inside the wheel
    what: str                    # for the page
    output: str                  # that the loss compares
    data: object                 # generator -> {input: array}, samples on the first axis
    options: list                # of zeroplan, without the loss
    trainable: int               # elements that must be trained
    bound: dict = dataclasses.field(default_factory=dict)  # inputs that --bind makes constants
    axes: dict = dataclasses.field(default_factory=dict)   # input -> axis of samples, where it is not the first
    whole: tuple = ()            # inputs that are given whole
    fixed: bool = False          # the file fixes the samples of a piece
    pieces: int = 2              # micro-batches
    noise: float = 0.1           # of the copy that is the target, relative to each tensor
    lr: float = 1e-3
    quantized: bool = False      # activations are integers
    gradients: bool = True       # doctor compares them with differences: minutes, where the file is large


def voice(samples, length, random, rate=16000):
    """Harmonics of a falling tone with noise."""
    t = numpy.arange(length) / rate
    base = random.uniform(100, 300, (samples, 1))
    waves = sum(numpy.sin(2 * numpy.pi * base * k * t * (1 - 0.3 * t)) / k for k in range(1, 9))
    return (0.2 * waves + 0.02 * random.standard_normal((samples, length))).astype(numpy.float32)


def print_like(samples, height, width, random):
    """Dark strokes in rows on light paper, normalized."""
    page = numpy.full((samples, 1, height, width), 0.9)
    for paper in page[:, 0]:
        for top in range(6, height - 17, 24):
            left = random.integers(4, 10)
            while left < width - 10:
                wide = random.integers(6, 11)
                paper[top:top + 16, left:left + 2] = 0.1
                paper[top:top + random.integers(6, 16), left + wide - 2:left + wide] = 0.1
                bar = top + random.integers(0, 14)
                paper[bar:bar + 2, left:left + wide] = 0.1
                left += wide + 3
    return {"x": numpy.repeat((page - 0.5) / 0.25, 3, axis=1).astype(numpy.float32)}


def silero(random):
    return {"input": voice(8, 576, random), "state": 0.3 * random.standard_normal((8, 2, 128)).astype(numpy.float32)}


def silero_sequence(random):
    state = lambda: 0.3 * random.standard_normal((1, 1, 128)).astype(numpy.float32)
    return {"input": voice(1, 8 * 576, random).reshape(8, 576), "h": state(), "c": state()}


def words(random):
    """Beginnings and ends of short files; 256 fills up."""
    letters = random.choice(numpy.frombuffer(b"etaoin shrdlu\n(){};=.,0123", numpy.uint8), (4, 2048)).astype(numpy.int32)
    letters[:, 300:1700] = 256
    return {"bytes": letters}


def letters(random):
    return {"char_inputs": random.integers(1, 40, (4, 24)), "diac_inputs": random.integers(0, 15, (4, 24)),
            "input_lengths": numpy.array([24, 20, 12, 23])}


SR = {"sr": 16000}
SILERO = "silero_vad/data/silero_vad"
PADDLE = "rapidocr_onnxruntime/models/ch_"
LENGTH = ["--dim", "sequence=576"]
FILES = [
    File("silero-vad, without If", "silero_vad", SILERO + "_op18_ifless.onnx", "Fourier transform by Conv, 4 Conv, LSTM; dynamo export", "output",
         silero, LENGTH, 243585, bound=SR, axes={"state": 1}),
    File("silero-vad, opset 15", "silero_vad", SILERO + "_16k_op15.onnx", "the same by TorchScript's exporter; LSTM inside If", "output", silero,
         LENGTH + FOURIER, 243585, bound=SR, axes={"state": 1}),
    File("silero-vad", "silero_vad", SILERO + ".onnx", "the same by spox: all weights are Constants inside If", "output", silero,
         ["--dim", "input[1]=576", "--sample-axis", "input=0", "--sample-axis", "state=1"] + FOURIER, 243585, bound=SR, axes={"state": 1}),
    File("silero-vad, half", "silero_vad", SILERO + "_half.onnx", "the same at half the rate", "output", silero, LENGTH + FOURIER, 243585,
         axes={"state": 1}),
    File("silero-vad, sequence", "silero_vad", SILERO + "_16k_sequence.onnx", "the same over a sequence", "speech_probs", silero_sequence, FOURIER,
         243585, pieces=1, whole=("h", "c")),
    File("faster-whisper VAD", "faster_whisper", "faster_whisper/assets/silero_vad_v6.onnx", "the same over a sequence, opset 18", "speech_probs",
         silero_sequence, FOURIER, 243585, pieces=1, whole=("h", "c")),
    File("magika", "magika", "magika/models/standard_v3_3/model.onnx", "kind of a file: bytes as integers, Conv, by JAX and tf2onnx", "target_label",
         words, [], 784214, noise=0.3, gradients=False),
    File("swift-f0", "swift_f0", "swift_f0/model.onnx", "pitch: three Fourier transforms by MatMul, Conv", "confidence",
         lambda random: {"audio": voice(2, 4096, random)},
         ["--dim", "samples=4096", "--freeze", "^v(41|161|262|124|242|343)$"],  # windows and weights of frequencies
         18553, bound={"fmin": 46.875, "fmax": 2093.75}, fixed=True, lr=1e-4, gradients=False),
    File("rapidocr detection", "rapidocr_onnxruntime", PADDLE + "PP-OCRv4_det_infer.onnx",
         "text in images: Conv, ConvTranspose, Resize; Paddle's Constants", "sigmoid_0.tmp_0", lambda random: print_like(2, 64, 64, random),
         ["--dim", "p2o.DynamicDimension.1=64", "--dim", "p2o.DynamicDimension.2=64"], 1171593),
    File("rapidocr recognition", "rapidocr_onnxruntime", PADDLE + "PP-OCRv4_rec_infer.onnx", "letters of a line: Conv, attention",
         "softmax_11.tmp_0", lambda random: print_like(2, 48, 64, random), ["--dim", "x[2]=48", "--dim", "p2o.DynamicDimension.1=64"], 2688509,
         lr=3e-4, gradients=False),
    File("rapidocr classification", "rapidocr_onnxruntime", PADDLE + "ppocr_mobile_v2.0_cls_infer.onnx",
         "is a line upside down: 35 BatchNormalizations", "save_infer_model/scale_0.tmp_1", lambda random: print_like(4, 48, 192, random),
         ["--dim", "x[2]=48", "--dim", "x[3]=192"], 129356),
    File("piper tashkeel", "piper_tts", "piper/tashkeel/model.onnx", "vowel marks of Arabic: attention, GRU, Conv", "logits", letters,
         ["--dim", "seq=24"], 1158993, pieces=1, lr=2e-4, gradients=False),
    File("piper nakdimon", "piper_tts", "piper/hebrew/nakdimon.onnx", "vowel marks of Hebrew: LSTM as Loop, by tf2onnx", "N",
         lambda random: {"input_1": letters(random)["char_inputs"].astype(numpy.float32)}, ["--dim", "unk__1916=24"], 5310416, gradients=False),
    File("pipecat smart-turn", "pipecat_ai", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
         "has a speaker ended: Whisper's encoder, int8 by QuantizeLinear and DequantizeLinear", "logits",
         lambda random: {"input_features": random.standard_normal((2, 80, 800)).astype(numpy.float32)}, [], 8000386, noise=0.5, quantized=True, gradients=False),
]
