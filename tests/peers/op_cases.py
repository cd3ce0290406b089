# SPDX-License-Identifier: Apache-2.0
"""Cases of op_files.py: one or more of each op that files hold, without strings and lookup tables."""
import numpy as np

from op_files import Case, Function, Type, const, int4, quantized, type_of, variable

F, I8, I16, I32, I64, U8, BOOL = 'f4', 'i1', 'i2', 'i4', 'i8', 'u1', 'b1'
NONE = {'fused_activation_function': 'NONE'}


def floats(*shape, low=-2.0, high=2.0):
    """The same values each time: a sequence that is not regular, rounded to multiples of 1/64."""
    count = int(np.prod(shape))
    unit = np.modf(np.arange(1, count + 1) * 0.6180339887)[0]
    return (np.round((low + (high - low) * unit) * 64) / 64).astype(np.float32).reshape(shape)


def whole(kind, *shape, low=-9, high=10):
    return floats(*shape, low=low, high=high).astype(kind)


def bools(*shape):
    return floats(*shape) > 0


def ints(*values):
    return const(np.array(values, np.int32))


def i64(*values):
    return const(np.array(values, np.int64))


def same(array):
    return [type_of(array)]


def results(kind, *shapes):
    return [Type(kind, shape) for shape in shapes]


X, Y, IMAGE = floats(2, 3, 4), floats(2, 3, 4, low=-3, high=1), floats(1, 6, 6, 2)
POSITIVE = floats(2, 3, 4, low=0.25, high=4)


def elementwise():
    for op in 'ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOGISTIC LOG_SOFTMAX NEG RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND SIGN SIN SQUARE ' \
              'TANH ZEROS_LIKE L2_NORMALIZATION'.split():
        yield Case(op, [X], same(X))
    for op in ('LOG', 'SQRT', 'RSQRT'):
        yield Case(op, [POSITIVE], same(X))
    yield Case('GELU', [X], same(X))
    yield Case('GELU', [X], same(X), {'approximate': True}, form='approximate')
    yield Case('LEAKY_RELU', [X], same(X), {'alpha': 0.125})
    yield Case('SOFTMAX', [X], same(X), {'beta': 1.0})
    yield Case('PRELU', [X, const(floats(4))], same(X))
    for op in 'ADD SUB MUL DIV'.split():
        yield Case(op, [X, POSITIVE], same(X), NONE)
    for op in 'MAXIMUM MINIMUM SQUARED_DIFFERENCE FLOOR_DIV FLOOR_MOD ATAN2'.split():
        yield Case(op, [X, Y], same(X))
    yield Case('POW', [POSITIVE, Y], same(X))
    yield Case('ADD_N', [X, Y, X], same(X))
    for op in 'EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL'.split():
        yield Case(op, [X, Y], results(BOOL, (2, 3, 4)))
    for op in ('LOGICAL_AND', 'LOGICAL_OR'):
        yield Case(op, [bools(2, 3), ~bools(3)], results(BOOL, (2, 3)))
    yield Case('LOGICAL_NOT', [bools(2, 3)], results(BOOL, (2, 3)))
    yield Case('BITWISE_XOR', [whole(I32, 6), whole(I32, 6, low=0, high=99)], results(I32, (6,)))
    yield Case('RIGHT_SHIFT', [whole(I32, 6, low=-99, high=99), whole(I32, 6, low=0, high=5)], results(I32, (6,)))
    yield Case('BITCAST', [X], results(I32, (2, 3, 4)))
    yield Case('CAST', [X], results(I32, (2, 3, 4)), {'in_data_type': 'FLOAT32', 'out_data_type': 'INT32'})
    yield Case('SELECT', [bools(2, 3, 4), X, Y], same(X))
    yield Case('SELECT_V2', [bools(3, 1), X, Y], same(X))
    yield Case('FAKE_QUANT', [X], same(X), {'min': -1.0, 'max': 1.0, 'num_bits': 8})
    yield Case('BUCKETIZE', [X], results(I32, (2, 3, 4)), {'boundaries': [-1.0, 0.0, 0.5]})


def quantization():
    i8 = whole(I8, 2, 8, low=-120, high=120)
    yield Case('QUANTIZE', [X], [Type(I8, X.shape, [0.03], 3)])
    yield Case('DEQUANTIZE', [quantized(i8, 0.05, -4)], results(F, (2, 8)))
    yield Case('ADD', [quantized(i8, 0.05, 3), quantized(i8[::-1].copy(), 0.04)], [Type(I8, (2, 8), [0.1], -3)], NONE, form='int8')
    weights, bias = whole(I8, 5, 8, low=-127, high=127), const(whole(I32, 5, low=-500, high=500), scale=[0.001])
    result = [Type(I8, (2, 5), [0.3], 2)]
    yield Case('FULLY_CONNECTED', [quantized(i8, 0.05, 3), const(weights, scale=[0.02]), bias], result, NONE, form='int8')
    channels = [0.01, 0.02, 0.03, 0.04, 0.05]
    biases = const(bias.array, scale=[scale * 0.05 for scale in channels])
    yield Case('FULLY_CONNECTED', [quantized(i8, 0.05, 3), const(weights, scale=channels), biases], result, NONE,
               form='int8, scales per channel')
    small = whole(I8, 5, 8, low=-7, high=8)
    yield Case('FULLY_CONNECTED', [quantized(i8, 0.05, 3), int4(small, scale=[0.25]), None], result, NONE, form='int8, int4 weights')
    yield Case('FULLY_CONNECTED', [floats(2, 8), int4(small, scale=[0.25]), const(floats(5))], results(F, (2, 5)), NONE,
               form='float, int4 weights')
    yield Case('FULLY_CONNECTED', [floats(2, 8), int4(small, scale=channels), None], results(F, (2, 5)), NONE,
               form='float, int4 weights, scales per channel')
    yield Case('FULLY_CONNECTED', [floats(2, 8), const(weights, scale=channels), None], results(F, (2, 5)), NONE,
               form='float, int8 weights, scales per channel')

    def bias32(count):
        return const(whole(I32, count, low=-500, high=500), scale=[scale * 0.05 for scale in channels[:count]])

    image = quantized(whole(I8, 1, 6, 6, 2, low=-120, high=120), 0.05, 3)
    conv = {'padding': 'SAME', 'stride_w': 1, 'stride_h': 1} | NONE
    kernel, depth = whole(I8, 4, 3, 3, 2, low=-7, high=8), whole(I8, 1, 3, 3, 2, low=-7, high=8)
    yield Case('CONV_2D', [image, const(kernel, scale=channels[:4]), bias32(4)], [Type(I8, (1, 6, 6, 4), [0.1], 2)], conv, form='int8')
    yield Case('CONV_2D', [image, int4(kernel, scale=channels[:4]), bias32(4)], [Type(I8, (1, 6, 6, 4), [0.1], 2)], conv,
               form='int4 weights')
    yield Case('DEPTHWISE_CONV_2D', [image, int4(depth, scale=channels[:2], axis=3), bias32(2)], [Type(I8, (1, 6, 6, 2), [0.1], 2)],
               conv | {'depth_multiplier': 1}, form='int4 weights')


    columns = [0.01, 0.02, 0.03, 0.04]
    for scales, form in ((columns[:1], '16x8'), (columns, '16x8, scales per channel')):
        rows = quantized(whole(I16, 3, 8, low=-30000, high=30000), 0.0001)
        yield Case('BATCH_MATMUL', [rows, const(whole(I8, 8, 4), scale=scales, axis=1)], [Type(I16, (3, 4), [0.0005])], form=form)


def products():
    conv = {'padding': 'SAME', 'stride_w': 2, 'stride_h': 1} | NONE
    pool = {'padding': 'VALID', 'stride_w': 2, 'stride_h': 1, 'filter_width': 2, 'filter_height': 3} | NONE
    for op in ('AVERAGE_POOL_2D', 'MAX_POOL_2D', 'L2_POOL_2D'):
        yield Case(op, [IMAGE], results(F, (1, 4, 3, 2)), pool)
    yield Case('CONV_2D', [IMAGE, const(floats(4, 3, 3, 2)), const(floats(4))], results(F, (1, 6, 3, 4)), conv)
    square = {'padding': 'SAME', 'stride_w': 2, 'stride_h': 2} | NONE
    yield Case('DEPTHWISE_CONV_2D', [IMAGE, const(floats(1, 3, 3, 4)), const(floats(4))], results(F, (1, 3, 3, 4)),
               square | {'depth_multiplier': 2})
    yield Case('TRANSPOSE_CONV', [ints(1, 12, 12, 3), const(floats(3, 3, 3, 2)), IMAGE], results(F, (1, 12, 12, 3)),
               square)
    volume = {'padding': 'SAME', 'stride_d': 1, 'stride_w': 1, 'stride_h': 1} | NONE
    yield Case('CONV_3D', [floats(1, 3, 4, 4, 2), const(floats(2, 2, 2, 2, 3)), const(floats(3))], results(F, (1, 3, 4, 4, 3)), volume)
    yield Case('CONV_3D_TRANSPOSE', [ints(1, 3, 4, 4, 3), const(floats(2, 2, 2, 3, 2)), floats(1, 3, 4, 4, 2)],
               results(F, (1, 3, 4, 4, 3)), volume)
    yield Case('FULLY_CONNECTED', [floats(2, 8), const(floats(5, 8)), const(floats(5))], results(F, (2, 5)), NONE)
    yield Case('BATCH_MATMUL', [X, floats(2, 4, 5)], results(F, (2, 3, 5)))
    yield Case('LOCAL_RESPONSE_NORMALIZATION', [IMAGE], same(IMAGE), {'radius': 1, 'bias': 1.0, 'alpha': 0.5, 'beta': 0.5})
    yield Case('RESIZE_BILINEAR', [IMAGE, ints(9, 4)], results(F, (1, 9, 4, 2)), {'half_pixel_centers': True})
    yield Case('RESIZE_NEAREST_NEIGHBOR', [IMAGE, ints(9, 4)], results(F, (1, 9, 4, 2)), {'half_pixel_centers': True})
    yield Case('RFFT2D', [floats(1, 4, 8), ints(4, 8)], results('c8', (1, 4, 5)))
    spectrum = [('RFFT2D', [floats(1, 4, 8), ints(4, 8)], 'spectrum', Type('c8', (1, 4, 5)), {})]
    for op in ('REAL', 'IMAG', 'COMPLEX_ABS'):
        yield Case(op, ['spectrum'], results(F, (1, 4, 5)), before=spectrum)


def reductions():
    for op in 'SUM MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD'.split():
        yield Case(op, [X, ints(1)], results(F, (2, 4)))
    for op in ('REDUCE_ALL', 'REDUCE_ANY'):
        yield Case(op, [bools(2, 3), ints(1)], results(BOOL, (2,)))
    for op in ('ARG_MAX', 'ARG_MIN'):
        yield Case(op, [X, ints(2)], results(I32, (2, 3)), {'output_type': 'INT32'})
    yield Case('CUMSUM', [X, const(np.array(1, np.int32))], same(X), {'exclusive': True})
    yield Case('TOPK_V2', [X, const(np.array(2, np.int32))], [Type(F, (2, 3, 2)), Type(I32, (2, 3, 2))])
    ids = np.array([0, 2, 0, 1], np.int32)
    yield Case('SEGMENT_SUM', [floats(4, 3), const(np.sort(ids))], results(F, (3, 3)))
    for op in ('PROD', 'MAX', 'SUM', 'MIN'):
        yield Case(f'UNSORTED_SEGMENT_{op}', [floats(4, 3), const(ids), const(np.array(3, np.int32))], results(F, (3, 3)))
    yield Case('REDUCE_WINDOW', [floats(3, 4), const(np.zeros((), np.float32)), i64(2, 2), i64(1, 1), i64(1, 1)],
               results(F, (2, 3)), {'reduce_function': 'ADD'})


def moves():
    yield Case('RESHAPE', [X, ints(4, 6)], results(F, (4, 6)), {'new_shape': [4, 6]})
    yield Case('SQUEEZE', [floats(2, 1, 3)], results(F, (2, 3)), {'squeeze_dims': [1]})
    yield Case('EXPAND_DIMS', [X, ints(1)], results(F, (2, 1, 3, 4)))
    yield Case('TRANSPOSE', [X, ints(2, 0, 1)], results(F, (4, 2, 3)))
    yield Case('CONCATENATION', [X, Y], results(F, (2, 6, 4)), {'axis': 1} | NONE)
    yield Case('PACK', [X, Y], results(F, (2, 2, 3, 4)), {'values_count': 2, 'axis': 1})
    yield Case('UNPACK', [floats(2, 3)], results(F, (2,), (2,), (2,)), {'num': 3, 'axis': 1})
    yield Case('SPLIT', [const(np.array(2, np.int32)), X], results(F, (2, 3, 2), (2, 3, 2)), {'num_splits': 2})
    yield Case('SPLIT_V', [X, ints(1, 3), const(np.array(2, np.int32))], results(F, (2, 3, 1), (2, 3, 3)), {'num_splits': 2})
    yield Case('SLICE', [X, ints(0, 1, 1), ints(2, 2, 3)], results(F, (2, 2, 3)))
    yield Case('STRIDED_SLICE', [X, ints(0, 2, 0), ints(2, 0, 4), ints(1, -1, 2)], results(F, (2, 2, 2)))
    yield Case('GATHER', [X, np.array([2, 0], np.int32)], results(F, (2, 2, 4)), {'axis': 1})
    yield Case('GATHER_ND', [X, np.array([[0, 1], [1, 2]], np.int32)], results(F, (2, 4)))
    yield Case('SCATTER_ND', [np.array([[3], [1]], np.int32), floats(2, 3), ints(5, 3)], results(F, (5, 3)))
    yield Case('PAD', [X, const(np.array([[0, 0], [1, 2], [0, 1]], np.int32))], results(F, (2, 6, 5)))
    yield Case('PADV2', [X, const(np.array([[0, 0], [1, 2], [0, 1]], np.int32)), const(np.full((), 7, np.float32))], results(F, (2, 6, 5)))
    yield Case('MIRROR_PAD', [X, const(np.array([[0, 0], [1, 2], [0, 1]], np.int32))], results(F, (2, 6, 5)), {'mode': 'REFLECT'})
    yield Case('TILE', [X, ints(1, 2, 2)], results(F, (2, 6, 8)))
    yield Case('BROADCAST_TO', [floats(3, 1), ints(2, 3, 4)], results(F, (2, 3, 4)))
    yield Case('BROADCAST_ARGS', [np.array([3, 1], np.int32), np.array([2, 1, 4], np.int32)], results(I32, (3,)))
    yield Case('REVERSE_V2', [X, ints(1)], same(X))
    yield Case('REVERSE_SEQUENCE', [X, ints(2, 3)], same(X), {'seq_dim': 1, 'batch_dim': 0})
    yield Case('SPACE_TO_DEPTH', [IMAGE], results(F, (1, 3, 3, 8)), {'block_size': 2})
    yield Case('DEPTH_TO_SPACE', [floats(1, 3, 3, 8)], results(F, (1, 6, 6, 2)), {'block_size': 2})
    zeros = const(np.zeros((2, 2), np.int32))
    yield Case('SPACE_TO_BATCH_ND', [IMAGE, ints(2, 2), zeros], results(F, (4, 3, 3, 2)))
    yield Case('BATCH_TO_SPACE_ND', [floats(4, 3, 3, 2), ints(2, 2), zeros], results(F, (1, 6, 6, 2)))
    yield Case('DYNAMIC_UPDATE_SLICE', [X, floats(1, 2, 2, low=5, high=9), np.array([1, 0, 1], np.int32)], same(X))
    yield Case('DILATE', [floats(2, 3), ints(2, 3), const(np.zeros((), np.float32))], results(F, (3, 7)))
    yield Case('MATRIX_DIAG', [floats(2, 3)], results(F, (2, 3, 3)))
    yield Case('MATRIX_SET_DIAG', [floats(2, 3, 3), floats(2, 3)], results(F, (2, 3, 3)))
    yield Case('EMBEDDING_LOOKUP', [np.array([3, 1], np.int32), const(floats(5, 3))], results(F, (2, 3)))
    yield Case('ONE_HOT', [np.array([3, 1], np.int32), const(np.array(5, np.int32)), const(np.full((), 2, np.float32)),
                           const(np.full((), -1, np.float32))], results(F, (2, 5)), {'axis': -1})
    yield Case('SPARSE_TO_DENSE', [np.array([1, 4], np.int32), ints(6), floats(2), const(np.full((), 9, np.float32))], results(F, (6,)))
    yield Case('SHAPE', [X], results(I32, (3,)), {'out_type': 'INT32'}, raw=True)
    yield Case('RANK', [X], results(I32, ()), raw=True)
    yield Case('FILL', [ints(2, 3), np.full((), 4, np.float32)], results(F, (2, 3)))
    yield Case('RANGE', [np.full((), 1, np.float32), np.full((), 4, np.float32), np.full((), 0.5, np.float32)], results(F, (6,)))
    yield Case('WHERE', [np.array([True, False, True])], results(I64, (2, 1)))
    yield Case('UNIQUE', [np.array([3, 5, 3, 1], np.int32)], results(I32, (3,), (4,)), {'idx_out_type': 'INT32'})
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]], np.float32)
    limits = [const(np.array(3, np.int32)), const(np.full((), 0.5, np.float32)), const(np.full((), 0.1, np.float32))]
    scores = np.array([0.5, 0.75, 0.25], np.float32)
    yield Case('NON_MAX_SUPPRESSION_V4', [boxes, scores, *limits], [Type(I32, (3,)), Type(I32, ())])
    yield Case('NON_MAX_SUPPRESSION_V5', [boxes, scores, *limits, const(np.full((), 0.25, np.float32))],
               [Type(I32, (3,)), Type(F, (3,)), Type(I32, ())])


def lookups():
    seeds = {'seed': 3, 'seed2': 5}
    for op in ('RANDOM_UNIFORM', 'RANDOM_STANDARD_NORMAL'):
        yield Case(op, [ints(3, 5)], results(F, (3, 5)), seeds)
    yield Case('MULTINOMIAL', [floats(2, 4), const(np.array(6, np.int32))], results(I64, (2, 6)), seeds)
    yield Case('HASHTABLE_LOOKUP', [np.array([7, 4, 1], np.int32), const(np.array([1, 3, 7], np.int32)), floats(3, 2)],
               [Type(F, (3, 2)), Type(U8, (3,))])
    indices = np.array([[0, 0], [0, 1], [2, 0]], np.int32)
    yield Case('EMBEDDING_LOOKUP_SPARSE', [np.array([1, 3, 0], np.int32), const(indices), ints(3, 2), floats(3), const(floats(4, 2))],
               results(F, (3, 2)), {'combiner': 'SUM'})
    yield Case('LSH_PROJECTION', [const(floats(3, 2)), whole(I32, 5), floats(5)], results(I32, (3,)), {'type': 'SPARSE'})


def state():
    handle = [('VAR_HANDLE', [], 'variable', Type('RESOURCE', (1,)), {'container': '', 'shared_name': 'v'})]
    read = [('READ_VARIABLE', ['variable'], 'value', type_of(X), {}), ('ADD', ['value', 'value'], 'sum', type_of(X), NONE)]
    yield Case('ASSIGN_VARIABLE', ['variable', X], [], before=handle, after=read)
    rnn = {'fused_activation_function': 'TANH'}
    weights = [const(floats(4, 3)), const(floats(4, 4)), const(floats(4))]
    yield Case('RNN', [floats(2, 3), *weights, variable(2, 4)], results(F, (2, 4)), rnn)
    yield Case('UNIDIRECTIONAL_SEQUENCE_RNN', [floats(2, 5, 3), *weights, variable(2, 4)], results(F, (2, 5, 4)), rnn)
    yield Case('BIDIRECTIONAL_SEQUENCE_RNN', [floats(2, 5, 3), *weights, variable(2, 4), *weights, variable(2, 4), None, None, None],
               results(F, (2, 5, 4), (2, 5, 4)), rnn)
    gates = [const(floats(4, 3)) for _ in range(4)] + [const(floats(4, 4)) for _ in range(4)] + [None] * 3
    biases = [const(floats(4)) for _ in range(4)] + [None] * 2
    lstm = {'fused_activation_function': 'TANH', 'time_major': False}
    yield Case('LSTM', [floats(2, 3), *gates, *biases, variable(2, 4), variable(2, 4)], results(F, (2, 4)), rnn)
    yield Case('UNIDIRECTIONAL_SEQUENCE_LSTM', [floats(2, 5, 3), *gates, *biases, variable(2, 4), variable(2, 4)] + [None] * 4,
               results(F, (2, 5, 4)), lstm)
    states = [variable(2, 4) for _ in range(4)]
    yield Case('BIDIRECTIONAL_SEQUENCE_LSTM', [floats(2, 5, 3), *gates, *biases, *gates, *biases, *states] + [None] * 9,
               results(F, (2, 5, 4), (2, 5, 4)), lstm)
    yield Case('SVDF', [floats(2, 3), const(floats(8, 3)), const(floats(8, 5)), const(floats(4)), variable(2, 40)], results(F, (2, 4)),
               {'rank': 2} | NONE)


def control():
    double = Function([type_of(X)], [('ADD', ['x0', 'x0'], 'y', type_of(X), NONE)], ['y'])
    square = Function([type_of(X)], [('MUL', ['x0', 'x0'], 'y', type_of(X), NONE)], ['y'])
    yield Case('IF', [np.array(True), X], same(X), {'then_subgraph_index': 1, 'else_subgraph_index': 2}, [double, square])
    count = Type(I32, ())
    condition = Function([count, count, type_of(X)], [('LESS', ['x0', 'x1'], 'more', Type(BOOL, ()), {})], ['more'])
    body = Function([count, count, type_of(X)], [('MUL', ['x0', 'x0'], 'next', count, NONE), ('ADD', ['x2', 'x2'], 'y', type_of(X), NONE)],
                    ['next', 'x1', 'y'])
    yield Case('WHILE', [np.array(2, np.int32), np.array(100, np.int32), X], [count, count, type_of(X)],
               {'cond_subgraph_index': 1, 'body_subgraph_index': 2}, [condition, body])
    yield Case('STABLEHLO_COMPOSITE', [X], same(X), {'name': 'test.double', 'decomposition_subgraph_index': 1}, [double])
    pair = [Type(F, ()), Type(F, ())]
    add = Function(pair, [('STABLEHLO_ADD', ['x0', 'x1'], 'y', pair[0], {})], ['y'])
    zero = const(np.zeros((), np.float32))
    yield Case('STABLEHLO_REDUCE_WINDOW', [floats(3, 4), zero], results(F, (2, 3)),
               {'window_dimensions': [2, 2], 'window_strides': [1, 1], 'base_dilations': [1, 1], 'window_dilations': [1, 1],
                'padding': [0, 0, 0, 0], 'body_subgraph_index': 1}, [add])
    yield Case('STABLEHLO_SCATTER', [floats(5, 3), np.array([[3], [1]], np.int32), floats(2, 3)], results(F, (5, 3)),
               {'update_window_dims': [1], 'inserted_window_dims': [0], 'scatter_dims_to_operand_dims': [0], 'index_vector_dim': 1,
                'update_computation_subgraph_index': 1}, [add])
    yield Case('STABLEHLO_CASE', [np.array(1, np.int32), X], same(X), {'branch_subgraph_indices': [1, 2]}, [double, square])


def stablehlo():
    for op in 'ADD MULTIPLY MAXIMUM MINIMUM'.split():
        yield Case(f'STABLEHLO_{op}', [X, POSITIVE], same(X))
    yield Case('STABLEHLO_AND', [whole(I32, 6), whole(I32, 6, low=0, high=99)], results(I32, (6,)))
    yield Case('STABLEHLO_SHIFT_LEFT', [whole(I32, 6), whole(I32, 6, low=0, high=5)], results(I32, (6,)))
    yield Case('STABLEHLO_PAD', [floats(2, 3), np.full((), 9, np.float32)], results(F, (3, 6)),
               {'edge_padding_low': [0, 1], 'edge_padding_high': [1, 0], 'interior_padding': [0, 1]})
    yield Case('STABLEHLO_GATHER', [floats(3, 4), np.array([[2], [0]], np.int32)], results(F, (2, 4)),
               {'offset_dims': [1], 'collapsed_slice_dims': [0], 'start_index_map': [0], 'index_vector_dim': 1, 'slice_sizes': [1, 4]})
    yield Case('STABLEHLO_RNG_BIT_GENERATOR', [np.array([1, 2, 3], np.uint64)], [Type('u8', (3,)), Type(I32, (2, 3))],
               {'algorithm': 'PHILOX'}, raw=True)


def newer_elements():
    """More forms of ops that 2.9 lacks."""
    wide = np.array([2**31 - 1, -2**31, 5, -7, 0, 1], np.int32)
    yield Case('BITCAST', [wide], results(I16, (6, 2)), form='to a narrower type')
    yield Case('BITCAST', [whole(I8, 3, 4, low=-120, high=120)], results(F, (3,)), form='to a wider type')
    yield Case('BITWISE_XOR', [bools(2, 3), ~bools(3)], results(BOOL, (2, 3)), form='bool, broadcast')
    yield Case('RIGHT_SHIFT', [whole(I8, 6, low=-120, high=120), whole(I8, 6, low=0, high=8)], results(I8, (6,)), form='int8')
    yield Case('SIGN', [np.array([np.nan, -0.0, 0.0, np.inf, -3], np.float32)], results(F, (5,)), form='special values')
    yield Case('SIGN', [wide], results(I32, (6,)), form='int32')
    nan = np.array([np.nan, 1, 2, -np.inf], np.float32)
    special = np.array([0.0, -0.0, np.inf, -1, np.nan], np.float32)
    yield Case('ATAN2', [special, special[::-1].copy()], results(F, (5,)), form='special values')
    for op in ('ADD', 'MULTIPLY', 'MAXIMUM', 'MINIMUM'):
        yield Case(f'STABLEHLO_{op}', [wide, wide[::-1].copy()], results(I32, (6,)), form='int32')
    yield Case('STABLEHLO_ADD', [nan, nan[::-1].copy()], results(F, (4,)), form='special values')
    yield Case('STABLEHLO_AND', [bools(2, 3), ~bools(2, 3)], results(BOOL, (2, 3)), form='bool')
    yield Case('STABLEHLO_SHIFT_LEFT', [whole(I8, 6, low=-120, high=120), whole(I8, 6, low=0, high=8)], results(I8, (6,)), form='int8')
    for state, algorithm in (([1, 2], 'PHILOX'), ([1, 2], 'THREEFRY'), ([1, 2], 'DEFAULT'), ([7, 2**63, 2**64 - 1], 'PHILOX')):
        yield Case('STABLEHLO_RNG_BIT_GENERATOR', [np.array(state, np.uint64)], [Type('u8', (len(state),)), Type(I64, (5,))],
                   {'algorithm': algorithm}, raw=True, form=f'{algorithm}, state of {len(state)}' + (', int64' if state[0] == 1 else ''))
    ids = const(np.array([0, -1, 0, 2, -1], np.int32))
    for op in ('PROD', 'MAX', 'SUM', 'MIN'):
        yield Case(f'UNSORTED_SEGMENT_{op}', [whole(I32, 5, 2), ids, const(np.array(4, np.int32))], results(I32, (4, 2)),
                   form='int32, dropped and empty segments')
    yield Case('FULLY_CONNECTED', [floats(3, 7), int4(whole(I8, 5, 7, low=-7, high=8), scale=[0.25]), None], results(F, (3, 5)), NONE,
               form='float, int4 weights, odd columns')
    yield Case('EMBEDDING_LOOKUP', [np.array([3, 1], np.int32), int4(whole(I8, 5, 8, low=-7, high=8), scale=[0.25])], results(F, (2, 8)),
               form='int4')
    rows = const(whole(I8, 5, 8, low=-99, high=99), scale=[0.01, 0.02, 0.03, 0.04, 0.05])
    yield Case('EMBEDDING_LOOKUP', [np.array([3, 1], np.int32), rows], results(F, (2, 8)), form='int8, scales per row')


def newer_windows():
    yield Case('DILATE', [whole(I32, 3, 2), ints(3, 1), const(np.array(-1, np.int32))], results(I32, (7, 2)), form='int32, another value')

    def reduce(function, kind, window, strides, dilations, shape, start):
        return Case('REDUCE_WINDOW', [whole(kind, 4, 5), const(np.array(start, kind)), i64(*window), i64(*strides), i64(*dilations)],
                    results(kind, shape), {'reduce_function': function}, form=f'{function}, {kind}')
    yield reduce('MUL', F, (2, 2), (2, 1), (1, 2), (2, 3), 1)
    yield reduce('MINIMUM', I32, (4, 1), (1, 2), (1, 1), (1, 3), 99)
    yield reduce('MAXIMUM', I8, (1, 3), (1, 1), (1, 2), (4, 1), -99)
    yield reduce('ANY', BOOL, (2, 2), (1, 1), (1, 1), (3, 4), False)
    yield reduce('ALL', BOOL, (2, 2), (1, 1), (1, 1), (3, 4), True)

    def pad(array, low, high, interior, shape, form):
        return Case('STABLEHLO_PAD', [array, np.full((), 9, array.dtype)], [Type(array.dtype.str[1:], shape)],
                    {'edge_padding_low': low, 'edge_padding_high': high, 'interior_padding': interior}, form=form)
    yield pad(floats(3, 4), [-1, 2], [0, -1], [0, 0], (2, 5), 'negative')
    yield pad(whole(I8, 3, 2), [-1, 0], [-1, 1], [2, 1], (5, 4), 'negative and interior')

    def gather(indices, shape, form, **options):
        options = {'offset_dims': [], 'collapsed_slice_dims': []} | options
        return Case('STABLEHLO_GATHER', [floats(3, 4), np.array(indices, np.int32)], results(F, shape), options, form=form)
    yield gather([[2, 3], [-5, 1]], (2, 2, 2), 'boxes moved inside', offset_dims=[1, 2], start_index_map=[0, 1], index_vector_dim=1,
                 slice_sizes=[2, 2])
    yield gather([[3, 1], [0, 2]], (2,), 'index vectors first', collapsed_slice_dims=[0, 1], start_index_map=[1, 0], index_vector_dim=0,
                 slice_sizes=[1, 1])
    yield gather([[3], [1]], (3, 2), 'columns', offset_dims=[0], collapsed_slice_dims=[1], start_index_map=[1], index_vector_dim=1,
                 slice_sizes=[3, 1])

    rows = {'update_window_dims': [1], 'inserted_window_dims': [0], 'scatter_dims_to_operand_dims': [0], 'index_vector_dim': 1,
            'update_computation_subgraph_index': 1}
    pair = [Type(F, ()), Type(F, ())]
    for op in ('MULTIPLY', 'MAXIMUM', 'MINIMUM'):
        function = Function(pair, [(f'STABLEHLO_{op}', ['x0', 'x1'], 'y', pair[0], {})], ['y'])
        yield Case('STABLEHLO_SCATTER', [floats(5, 3), np.array([[3], [1], [3]], np.int32), floats(3, 3)], results(F, (5, 3)), rows,
                   [function], form=op)
        yield Case('STABLEHLO_REDUCE_WINDOW', [floats(3, 4), const(np.full((), 0.5, np.float32))], results(F, (3, 2)),
                   {'window_dimensions': [2, 2], 'window_strides': [1, 2], 'base_dilations': [1, 1], 'window_dilations': [1, 1],
                    'padding': [1, 0, 0, 0], 'body_subgraph_index': 1}, [function], form=f'{op}, padded')
    replace = Function(pair, [], ['x1'])
    yield Case('STABLEHLO_SCATTER', [floats(5, 3), np.array([[3], [1], [9]], np.int32), floats(3, 3)], results(F, (5, 3)), rows, [replace],
               form='replace, one outside')
    add = Function(pair, [('STABLEHLO_ADD', ['x0', 'x1'], 'y', pair[0], {})], ['y'])
    yield Case('STABLEHLO_REDUCE_WINDOW', [floats(3, 4), const(np.zeros((), np.float32))], results(F, (4, 6)),
               {'window_dimensions': [2, 2], 'window_strides': [1, 1], 'base_dilations': [2, 2], 'window_dilations': [1, 1],
                'padding': [0, 0, 0, 0], 'body_subgraph_index': 1}, [add], form='dilated operand')
    yield Case('STABLEHLO_REDUCE_WINDOW', [floats(4, 5), const(np.zeros((), np.float32))], results(F, (2, 3)),
               {'window_dimensions': [2, 2], 'window_strides': [1, 1], 'base_dilations': [1, 1], 'window_dilations': [2, 2],
                'padding': [0, 0, 0, 0], 'body_subgraph_index': 1}, [add], form='dilated window')
    double = Function([type_of(X)], [('ADD', ['x0', 'x0'], 'y', type_of(X), NONE)], ['y'])
    square = Function([type_of(X)], [('MUL', ['x0', 'x0'], 'y', type_of(X), NONE)], ['y'])
    yield Case('STABLEHLO_CASE', [np.array(7, np.int32), X], same(X), {'branch_subgraph_indices': [1, 2]}, [double, square],
               form='index outside')


def all_cases():
    for family in (elementwise, quantization, products, reductions, moves, lookups, state, control, stablehlo, newer_elements,
                   newer_windows):
        yield from family()
