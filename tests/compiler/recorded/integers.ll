; ModuleID = 'tests/compiler/programs/integers.cu'
source_filename = "tests/compiler/programs/integers.cu"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: readwrite)
define dso_local ptx_kernel void @k(ptr nofree noundef readonly captures(none) %in, ptr nofree noundef writeonly captures(none) %out) local_unnamed_addr #0 {
entry:
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %idxprom = zext nneg i32 %0 to i64
  %arrayidx = getelementptr inbounds nuw [4 x i8], ptr %in, i64 %idxprom
  %1 = load i32, ptr %arrayidx, align 4, !tbaa !7
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 256
  %2 = load i32, ptr %arrayidx3, align 4, !tbaa !7
  %mul = shl nuw nsw i32 %0, 4
  %idx.ext = zext nneg i32 %mul to i64
  %add.ptr = getelementptr inbounds nuw [4 x i8], ptr %out, i64 %idx.ext
  %mul.i185 = mul i32 %1, 433
  %shr.i186 = lshr i32 %mul.i185, 3
  %shl.i187 = shl i32 %1, 7
  %xor.i = xor i32 %2, %shl.i187
  %sext.i = shl i32 %shr.i186, 24
  %conv4.i = ashr exact i32 %sext.i, 24
  %sext164.i = shl i32 %xor.i, 24
  %conv5.i = ashr exact i32 %sext164.i, 24
  %add.i = add i32 %shr.i186, %xor.i
  %sext165.i = shl i32 %add.i, 24
  %conv7.i = ashr exact i32 %sext165.i, 24
  %mul8.i = mul nsw i32 %conv7.i, 3
  %sub.i = sub i32 %shr.i186, %xor.i
  %sext166.i = shl i32 %sub.i, 24
  %conv12.i = ashr exact i32 %sext166.i, 24
  %mul13.i = mul nsw i32 %conv12.i, 5
  %xor14.i = xor i32 %mul8.i, %mul13.i
  %sext167.i = mul i32 %sext164.i, %shr.i186
  %conv19.i = ashr exact i32 %sext167.i, 24
  %mul20.i = mul nsw i32 %conv19.i, 7
  %xor21.i = xor i32 %xor14.i, %mul20.i
  %sext164.off.i = add i32 %sext164.i, -1
  %switch.i = icmp ult i32 %sext164.off.i, -16777217
  br i1 %switch.i, label %if.then.i, label %_Z6all_ofIahEjjj.exit

if.then.i:                                        ; preds = %entry
  %div.lhs.trunc.i = trunc nsw i32 %conv4.i to i16
  %div.rhs.trunc.i = trunc nsw i32 %conv5.i to i16
  %div.lhs.trunc.i.frozen = freeze i16 %div.lhs.trunc.i
  %div.rhs.trunc.i.frozen = freeze i16 %div.rhs.trunc.i
  %div173.i = sdiv i16 %div.lhs.trunc.i.frozen, %div.rhs.trunc.i.frozen
  %div.sext.i = zext i16 %div173.i to i32
  %sext168.i = shl i32 %div.sext.i, 24
  %conv28.i = ashr exact i32 %sext168.i, 24
  %mul29.i = mul nsw i32 %conv28.i, 11
  %3 = mul i16 %div173.i, %div.rhs.trunc.i.frozen
  %rem32174.i.decomposed = sub i16 %div.lhs.trunc.i.frozen, %3
  %narrow.i = mul nsw i16 %rem32174.i.decomposed, 13
  %mul35.i = sext i16 %narrow.i to i32
  %4 = xor i32 %mul29.i, %mul35.i
  %xor37.i = xor i32 %4, %xor21.i
  br label %_Z6all_ofIahEjjj.exit

_Z6all_ofIahEjjj.exit:                            ; preds = %entry, %if.then.i
  %sum.0.i = phi i32 [ %xor37.i, %if.then.i ], [ %xor21.i, %entry ]
  %conv.i188 = trunc i32 %shr.i186 to i8
  %5 = and i32 %2, 7
  %conv38.i = and i32 %shr.i186, 255
  %shl39.i = shl i32 %shr.i186, %5
  %sext169.i = shl i32 %shl39.i, 24
  %conv41.i = ashr exact i32 %sext169.i, 24
  %shr43.i = ashr i32 %conv4.i, %5
  %mul46.i = mul nsw i32 %shr43.i, 17
  %shr49.i = lshr i32 %conv38.i, %5
  %mul50.i = mul nuw nsw i32 %shr49.i, 19
  %6 = xor i32 %conv41.i, %mul46.i
  %xor51.i = xor i32 %6, %mul50.i
  %add52.i = add nsw i32 %sum.0.i, %xor51.i
  %cmp55.i = icmp slt i32 %conv4.i, %conv5.i
  %conv56.i = zext i1 %cmp55.i to i32
  %cmp59.not.i = icmp sgt i32 %conv4.i, %conv5.i
  %shl61.i = select i1 %cmp59.not.i, i32 0, i32 2
  %cmp64.i = icmp eq i32 %conv4.i, %conv5.i
  %shl66.i = select i1 %cmp64.i, i32 4, i32 0
  %conv69.i = and i32 %xor.i, 255
  %cmp70.i = icmp samesign ult i32 %conv38.i, %conv69.i
  %shl72.i = select i1 %cmp70.i, i32 8, i32 0
  %cmp75.i = icmp sgt i32 %conv4.i, 1
  %shl77.i = select i1 %cmp75.i, i32 16, i32 0
  %7 = or disjoint i32 %shl61.i, %conv56.i
  %8 = or disjoint i32 %7, %shl66.i
  %9 = or disjoint i32 %8, %shl77.i
  %or78.i = or disjoint i32 %9, %shl72.i
  %xor79.i = xor i32 %add52.i, %or78.i
  %cond.i = select i1 %cmp55.i, i32 %shr.i186, i32 %xor.i
  %sext170.i = shl i32 %cond.i, 24
  %conv83.i = ashr exact i32 %sext170.i, 24
  %and.i190 = and i32 %conv4.i, %conv5.i
  %mul86.i = mul nsw i32 %and.i190, 23
  %or90.i = or i32 %conv4.i, %conv5.i
  %mul91.i = mul nsw i32 %or90.i, 29
  %10 = xor i32 %shr.i186, %xor.i
  %conv96.i = xor i32 %10, -1
  %sext171.i = shl i32 %conv96.i, 24
  %conv97.i = ashr exact i32 %sext171.i, 24
  %mul98.i = mul nsw i32 %conv97.i, 31
  %xor87.i = xor i32 %mul91.i, %mul86.i
  %xor92.i = xor i32 %xor87.i, %mul98.i
  %xor99.i = xor i32 %xor92.i, %conv83.i
  %add100.i = add i32 %xor79.i, %xor99.i
  %mul102.i = mul nsw i32 %conv4.i, 37
  %shr103.i = ashr i32 %mul102.i, 16
  %xor110.i = xor i32 %add100.i, %shr103.i
  %conv111.i = sitofp i8 %conv.i188 to float
  %11 = bitcast float %conv111.i to i32
  %conv114.i = uitofp nneg i32 %conv69.i to float
  %12 = bitcast float %conv114.i to i32
  %add116.i = add i32 %11, %12
  %add117.i = add i32 %add116.i, %xor110.i
  store i32 %add117.i, ptr %add.ptr, align 4, !tbaa !7
  %conv7.i197 = and i32 %add.i, 255
  %mul8.i198 = mul nuw nsw i32 %conv7.i197, 3
  %conv12.i200 = and i32 %sub.i, 255
  %mul13.i201 = mul nuw nsw i32 %conv12.i200, 5
  %xor14.i202 = xor i32 %mul8.i198, %mul13.i201
  %mul17.i = mul i32 %shr.i186, %xor.i
  %conv19.i203 = and i32 %mul17.i, 255
  %mul20.i204 = mul nuw nsw i32 %conv19.i203, 7
  %xor21.i205 = xor i32 %xor14.i202, %mul20.i204
  %conv5.off.i = add nsw i32 %conv69.i, -1
  %switch.i206 = icmp ult i32 %conv5.off.i, 254
  br i1 %switch.i206, label %if.then.i248, label %_Z6all_ofIhhEjjj.exit

if.then.i248:                                     ; preds = %_Z6all_ofIahEjjj.exit
  %div.rhs.trunc.i249 = trunc i32 %xor.i to i8
  %conv.i188.frozen = freeze i8 %conv.i188
  %div.rhs.trunc.i249.frozen = freeze i8 %div.rhs.trunc.i249
  %div164.i = udiv i8 %conv.i188.frozen, %div.rhs.trunc.i249.frozen
  %div.zext.i = zext i8 %div164.i to i32
  %mul29.i250 = mul nuw nsw i32 %div.zext.i, 11
  %13 = mul i8 %div164.i, %div.rhs.trunc.i249.frozen
  %rem32165.i.decomposed = sub i8 %conv.i188.frozen, %13
  %rem32.zext.i = zext i8 %rem32165.i.decomposed to i32
  %mul35.i251 = mul nuw nsw i32 %rem32.zext.i, 13
  %14 = xor i32 %mul29.i250, %mul35.i251
  %xor37.i252 = xor i32 %14, %xor21.i205
  br label %_Z6all_ofIhhEjjj.exit

_Z6all_ofIhhEjjj.exit:                            ; preds = %_Z6all_ofIahEjjj.exit, %if.then.i248
  %sum.0.i208 = phi i32 [ %xor37.i252, %if.then.i248 ], [ %xor21.i205, %_Z6all_ofIahEjjj.exit ]
  %conv41.i211 = and i32 %shl39.i, 255
  %mul46.i213 = mul nuw nsw i32 %shr49.i, 17
  %xor47.i214 = xor i32 %mul46.i213, %conv41.i211
  %xor51.i216 = xor i32 %xor47.i214, %mul50.i
  %add52.i217 = add nuw nsw i32 %sum.0.i208, %xor51.i216
  %conv56.i219 = zext i1 %cmp70.i to i32
  %cmp59.not.i220 = icmp samesign ugt i32 %conv38.i, %conv69.i
  %shl61.i221 = select i1 %cmp59.not.i220, i32 0, i32 2
  %cmp64.i222 = icmp eq i32 %conv38.i, %conv69.i
  %shl66.i223 = select i1 %cmp64.i222, i32 4, i32 0
  %15 = or disjoint i32 %shl61.i221, %shl66.i223
  %or67.i224 = or disjoint i32 %15, %conv56.i219
  %cmp75.i227 = icmp samesign ugt i32 %conv38.i, 1
  %shl77.i228 = select i1 %cmp75.i227, i32 16, i32 0
  %16 = or disjoint i32 %or67.i224, %shl77.i228
  %or78.i229 = or disjoint i32 %16, %shl72.i
  %xor79.i230 = xor i32 %add52.i217, %or78.i229
  %cond.i231 = select i1 %cmp70.i, i32 %shr.i186, i32 %xor.i
  %conv83.i232 = and i32 %cond.i231, 255
  %and.i233 = and i32 %conv69.i, %shr.i186
  %mul86.i234 = mul nuw nsw i32 %and.i233, 23
  %or90.i235 = or i32 %conv38.i, %conv69.i
  %mul91.i236 = mul nuw nsw i32 %or90.i235, 29
  %conv96.i237 = and i32 %10, 255
  %conv97.i238 = xor i32 %conv96.i237, 255
  %mul98.i239 = mul nuw nsw i32 %conv97.i238, 31
  %xor87.i240 = xor i32 %mul91.i236, %mul86.i234
  %xor92.i241 = xor i32 %xor87.i240, %conv83.i232
  %xor99.i242 = xor i32 %xor92.i241, %mul98.i239
  %conv111.i243 = uitofp i8 %conv.i188 to float
  %17 = bitcast float %conv111.i243 to i32
  %add100.i245 = add nuw i32 %17, %12
  %add116.i246 = add i32 %add100.i245, %xor99.i242
  %add117.i247 = add i32 %add116.i246, %xor79.i230
  %arrayidx8 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 4
  store i32 %add117.i247, ptr %arrayidx8, align 4, !tbaa !7
  %mul.i253 = mul i32 %1, 489905
  %shr.i254 = lshr i32 %mul.i253, 3
  %sext.i257 = shl i32 %shr.i254, 16
  %conv4.i258 = ashr exact i32 %sext.i257, 16
  %sext164.i259 = shl i32 %xor.i, 16
  %conv5.i260 = ashr exact i32 %sext164.i259, 16
  %add.i261 = add i32 %shr.i254, %xor.i
  %sext165.i262 = shl i32 %add.i261, 16
  %conv7.i263 = ashr exact i32 %sext165.i262, 16
  %mul8.i264 = mul nsw i32 %conv7.i263, 3
  %sub.i265 = sub i32 %shr.i254, %xor.i
  %sext166.i266 = shl i32 %sub.i265, 16
  %conv12.i267 = ashr exact i32 %sext166.i266, 16
  %mul13.i268 = mul nsw i32 %conv12.i267, 5
  %xor14.i269 = xor i32 %mul8.i264, %mul13.i268
  %sext167.i270 = mul i32 %sext164.i259, %shr.i254
  %conv19.i271 = ashr exact i32 %sext167.i270, 16
  %mul20.i272 = mul nsw i32 %conv19.i271, 7
  %xor21.i273 = xor i32 %xor14.i269, %mul20.i272
  %sext164.off.i274 = add i32 %sext164.i259, -1
  %switch.i275 = icmp ult i32 %sext164.off.i274, -65537
  br i1 %switch.i275, label %if.then.i328, label %_Z6all_ofIstEjjj.exit

if.then.i328:                                     ; preds = %_Z6all_ofIhhEjjj.exit
  %conv4.i258.frozen = freeze i32 %conv4.i258
  %conv5.i260.frozen = freeze i32 %conv5.i260
  %div.i = sdiv i32 %conv4.i258.frozen, %conv5.i260.frozen
  %sext168.i329 = shl i32 %div.i, 16
  %conv28.i330 = ashr exact i32 %sext168.i329, 16
  %mul29.i331 = mul nsw i32 %conv28.i330, 11
  %18 = mul i32 %div.i, %conv5.i260.frozen
  %rem32.i.decomposed = sub i32 %conv4.i258.frozen, %18
  %mul35.i332 = mul nsw i32 %rem32.i.decomposed, 13
  %19 = xor i32 %mul35.i332, %mul29.i331
  %xor37.i333 = xor i32 %19, %xor21.i273
  br label %_Z6all_ofIstEjjj.exit

_Z6all_ofIstEjjj.exit:                            ; preds = %_Z6all_ofIhhEjjj.exit, %if.then.i328
  %sum.0.i276 = phi i32 [ %xor37.i333, %if.then.i328 ], [ %xor21.i273, %_Z6all_ofIhhEjjj.exit ]
  %conv.i277 = trunc i32 %shr.i254 to i16
  %20 = and i32 %2, 15
  %conv38.i278 = and i32 %shr.i254, 65535
  %shl39.i279 = shl i32 %shr.i254, %20
  %sext169.i280 = shl i32 %shl39.i279, 16
  %conv41.i281 = ashr exact i32 %sext169.i280, 16
  %shr43.i282 = ashr i32 %conv4.i258, %20
  %mul46.i283 = mul nsw i32 %shr43.i282, 17
  %shr49.i284 = lshr i32 %conv38.i278, %20
  %mul50.i285 = mul nuw nsw i32 %shr49.i284, 19
  %21 = xor i32 %conv41.i281, %mul46.i283
  %xor51.i287 = xor i32 %21, %mul50.i285
  %add52.i288 = add nsw i32 %sum.0.i276, %xor51.i287
  %cmp55.i289 = icmp slt i32 %conv4.i258, %conv5.i260
  %conv56.i290 = zext i1 %cmp55.i289 to i32
  %cmp59.not.i291 = icmp sgt i32 %conv4.i258, %conv5.i260
  %shl61.i292 = select i1 %cmp59.not.i291, i32 0, i32 2
  %cmp64.i293 = icmp eq i32 %conv4.i258, %conv5.i260
  %shl66.i294 = select i1 %cmp64.i293, i32 4, i32 0
  %conv69.i295 = and i32 %xor.i, 65535
  %cmp70.i296 = icmp samesign ult i32 %conv38.i278, %conv69.i295
  %shl72.i297 = select i1 %cmp70.i296, i32 8, i32 0
  %cmp75.i298 = icmp sgt i32 %conv4.i258, 1
  %shl77.i299 = select i1 %cmp75.i298, i32 16, i32 0
  %22 = or disjoint i32 %shl61.i292, %conv56.i290
  %23 = or disjoint i32 %22, %shl66.i294
  %24 = or disjoint i32 %23, %shl77.i299
  %or78.i303 = or disjoint i32 %24, %shl72.i297
  %xor79.i304 = xor i32 %add52.i288, %or78.i303
  %cond.i305 = select i1 %cmp55.i289, i32 %shr.i254, i32 %xor.i
  %sext170.i306 = shl i32 %cond.i305, 16
  %conv83.i307 = ashr exact i32 %sext170.i306, 16
  %and.i308 = and i32 %conv4.i258, %conv5.i260
  %mul86.i309 = mul nsw i32 %and.i308, 23
  %or90.i310 = or i32 %conv4.i258, %conv5.i260
  %mul91.i311 = mul nsw i32 %or90.i310, 29
  %25 = xor i32 %shr.i254, %xor.i
  %conv96.i312 = xor i32 %25, -1
  %sext171.i313 = shl i32 %conv96.i312, 16
  %conv97.i314 = ashr exact i32 %sext171.i313, 16
  %mul98.i315 = mul nsw i32 %conv97.i314, 31
  %xor87.i316 = xor i32 %mul91.i311, %mul86.i309
  %xor92.i317 = xor i32 %xor87.i316, %mul98.i315
  %xor99.i318 = xor i32 %xor92.i317, %conv83.i307
  %add100.i319 = add i32 %xor79.i304, %xor99.i318
  %mul102.i320 = mul nsw i32 %conv4.i258, 37
  %shr103.i321 = ashr i32 %mul102.i320, 16
  %narrow.i322 = mul nuw nsw i32 %conv69.i295, 41
  %26 = lshr i32 %narrow.i322, 16
  %add109.i = add nsw i32 %shr103.i321, %26
  %xor110.i323 = xor i32 %add100.i319, %add109.i
  %conv111.i324 = sitofp i16 %conv.i277 to float
  %27 = bitcast float %conv111.i324 to i32
  %and113.i = and i32 %xor.i, 32767
  %conv114.i325 = uitofp nneg i32 %and113.i to float
  %28 = bitcast float %conv114.i325 to i32
  %add116.i326 = add i32 %27, %28
  %add117.i327 = add i32 %add116.i326, %xor110.i323
  %arrayidx10 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 8
  store i32 %add117.i327, ptr %arrayidx10, align 4, !tbaa !7
  %conv7.i340 = and i32 %add.i261, 65535
  %mul8.i341 = mul nuw nsw i32 %conv7.i340, 3
  %conv12.i343 = and i32 %sub.i265, 65535
  %mul13.i344 = mul nuw nsw i32 %conv12.i343, 5
  %xor14.i345 = xor i32 %mul8.i341, %mul13.i344
  %mul17.i346 = mul i32 %shr.i254, %xor.i
  %conv19.i347 = and i32 %mul17.i346, 65535
  %mul20.i348 = mul nuw nsw i32 %conv19.i347, 7
  %xor21.i349 = xor i32 %xor14.i345, %mul20.i348
  %conv5.off.i350 = add nsw i32 %conv69.i295, -1
  %switch.i351 = icmp ult i32 %conv5.off.i350, 65534
  br i1 %switch.i351, label %if.then.i397, label %_Z6all_ofIttEjjj.exit

if.then.i397:                                     ; preds = %_Z6all_ofIstEjjj.exit
  %div.rhs.trunc.i398 = trunc i32 %xor.i to i16
  %conv.i277.frozen = freeze i16 %conv.i277
  %div.rhs.trunc.i398.frozen = freeze i16 %div.rhs.trunc.i398
  %div165.i = udiv i16 %conv.i277.frozen, %div.rhs.trunc.i398.frozen
  %div.zext.i399 = zext i16 %div165.i to i32
  %mul29.i400 = mul nuw nsw i32 %div.zext.i399, 11
  %29 = mul i16 %div165.i, %div.rhs.trunc.i398.frozen
  %rem32166.i.decomposed = sub i16 %conv.i277.frozen, %29
  %rem32.zext.i401 = zext i16 %rem32166.i.decomposed to i32
  %mul35.i402 = mul nuw nsw i32 %rem32.zext.i401, 13
  %30 = xor i32 %mul29.i400, %mul35.i402
  %xor37.i403 = xor i32 %30, %xor21.i349
  br label %_Z6all_ofIttEjjj.exit

_Z6all_ofIttEjjj.exit:                            ; preds = %_Z6all_ofIstEjjj.exit, %if.then.i397
  %sum.0.i353 = phi i32 [ %xor37.i403, %if.then.i397 ], [ %xor21.i349, %_Z6all_ofIstEjjj.exit ]
  %conv41.i356 = and i32 %shl39.i279, 65535
  %mul46.i358 = mul nuw nsw i32 %shr49.i284, 17
  %xor47.i359 = xor i32 %mul46.i358, %conv41.i356
  %xor51.i361 = xor i32 %xor47.i359, %mul50.i285
  %add52.i362 = add nuw nsw i32 %sum.0.i353, %xor51.i361
  %conv56.i364 = zext i1 %cmp70.i296 to i32
  %cmp59.not.i365 = icmp samesign ugt i32 %conv38.i278, %conv69.i295
  %shl61.i366 = select i1 %cmp59.not.i365, i32 0, i32 2
  %cmp64.i367 = icmp eq i32 %conv38.i278, %conv69.i295
  %shl66.i368 = select i1 %cmp64.i367, i32 4, i32 0
  %31 = or disjoint i32 %shl61.i366, %shl66.i368
  %or67.i369 = or disjoint i32 %31, %conv56.i364
  %cmp75.i372 = icmp samesign ugt i32 %conv38.i278, 1
  %shl77.i373 = select i1 %cmp75.i372, i32 16, i32 0
  %32 = or disjoint i32 %or67.i369, %shl77.i373
  %or78.i374 = or disjoint i32 %32, %shl72.i297
  %xor79.i375 = xor i32 %add52.i362, %or78.i374
  %cond.i376 = select i1 %cmp70.i296, i32 %shr.i254, i32 %xor.i
  %conv83.i377 = and i32 %cond.i376, 65535
  %and.i378 = and i32 %conv69.i295, %shr.i254
  %mul86.i379 = mul nuw nsw i32 %and.i378, 23
  %or90.i380 = or i32 %conv38.i278, %conv69.i295
  %mul91.i381 = mul nuw nsw i32 %or90.i380, 29
  %conv96.i382 = and i32 %25, 65535
  %conv97.i383 = xor i32 %conv96.i382, 65535
  %mul98.i384 = mul nuw nsw i32 %conv97.i383, 31
  %xor87.i385 = xor i32 %mul91.i381, %mul86.i379
  %xor92.i386 = xor i32 %xor87.i385, %conv83.i377
  %xor99.i387 = xor i32 %xor92.i386, %mul98.i384
  %add100.i388 = add nuw nsw i32 %xor79.i375, %xor99.i387
  %narrow.i389 = mul nuw nsw i32 %conv38.i278, 37
  %33 = lshr i32 %narrow.i389, 16
  %add109.i390 = add nuw nsw i32 %33, %26
  %xor110.i391 = xor i32 %add100.i388, %add109.i390
  %conv111.i392 = uitofp i16 %conv.i277 to float
  %34 = bitcast float %conv111.i392 to i32
  %add116.i395 = add nuw i32 %34, %28
  %add117.i396 = add i32 %add116.i395, %xor110.i391
  %arrayidx12 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 12
  store i32 %add117.i396, ptr %arrayidx12, align 4, !tbaa !7
  %mul.i404 = mul i32 %1, -1640531535
  %shr.i405 = lshr i32 %mul.i404, 3
  %add.i408 = add i32 %shr.i405, %xor.i
  %mul2.i = mul i32 %add.i408, 3
  %sub.i409 = sub i32 %shr.i405, %xor.i
  %mul3.i = mul i32 %sub.i409, 5
  %xor4.i = xor i32 %mul2.i, %mul3.i
  %mul5.i = mul i32 %xor.i, 7
  %mul6.i = mul i32 %mul5.i, %shr.i405
  %xor7.i = xor i32 %xor4.i, %mul6.i
  %cmp.i = icmp ne i32 %2, %shl.i187
  %cmp8.i = icmp ne i32 %xor.i, -1
  %or.cond.i = and i1 %cmp.i, %cmp8.i
  br i1 %or.cond.i, label %if.then.i414, label %_Z6all_ofIijEjjj.exit

if.then.i414:                                     ; preds = %_Z6all_ofIttEjjj.exit
  %shr.i405.frozen = freeze i32 %shr.i405
  %xor.i.frozen = freeze i32 %xor.i
  %div.i415 = sdiv i32 %shr.i405.frozen, %xor.i.frozen
  %mul9.i = mul i32 %div.i415, 11
  %35 = mul i32 %div.i415, %xor.i.frozen
  %rem10.i.decomposed = sub i32 %shr.i405.frozen, %35
  %mul11.i = mul i32 %rem10.i.decomposed, 13
  %36 = xor i32 %mul9.i, %mul11.i
  %xor13.i = xor i32 %36, %xor7.i
  br label %_Z6all_ofIijEjjj.exit

_Z6all_ofIijEjjj.exit:                            ; preds = %_Z6all_ofIttEjjj.exit, %if.then.i414
  %sum.0.i410 = phi i32 [ %xor13.i, %if.then.i414 ], [ %xor7.i, %_Z6all_ofIttEjjj.exit ]
  %37 = and i32 %2, 31
  %shl14.i = shl i32 %shr.i405, %37
  %shr15.i = lshr i32 %shr.i405, %37
  %mul16.i = mul i32 %shr15.i, 17
  %xor17.i = xor i32 %mul16.i, %shl14.i
  %mul19.i = mul i32 %shr15.i, 19
  %xor20.i = xor i32 %xor17.i, %mul19.i
  %add21.i = add i32 %sum.0.i410, %xor20.i
  %cmp22.i = icmp slt i32 %shr.i405, %xor.i
  %conv23.i = zext i1 %cmp22.i to i32
  %cmp24.not.i = icmp sgt i32 %shr.i405, %xor.i
  %shl26.i = select i1 %cmp24.not.i, i32 0, i32 2
  %cmp27.i = icmp eq i32 %shr.i405, %xor.i
  %shl29.i = select i1 %cmp27.i, i32 4, i32 0
  %cmp31.i = icmp ult i32 %shr.i405, %xor.i
  %shl33.i = select i1 %cmp31.i, i32 8, i32 0
  %cmp35.inv.i = icmp ult i32 %mul.i404, 16
  %shl37.i = select i1 %cmp35.inv.i, i32 0, i32 16
  %38 = or disjoint i32 %shl26.i, %conv23.i
  %39 = or disjoint i32 %38, %shl37.i
  %or34.i = or disjoint i32 %39, %shl29.i
  %or38.i = or disjoint i32 %or34.i, %shl33.i
  %xor39.i = xor i32 %add21.i, %or38.i
  %cond.i412 = tail call i32 @llvm.smin.i32(i32 %shr.i405, i32 %xor.i)
  %and.i413 = and i32 %shr.i405, %xor.i
  %mul41.i = mul i32 %and.i413, 23
  %or43.i = or i32 %shr.i405, %xor.i
  %mul44.i = mul i32 %or43.i, 29
  %40 = xor i32 %xor.i, %shr.i405
  %xor46.i = xor i32 %40, -1
  %mul47.i = mul i32 %xor46.i, 31
  %41 = xor i32 %mul41.i, %cond.i412
  %xor45.i = xor i32 %41, %mul44.i
  %xor48.i = xor i32 %xor45.i, %mul47.i
  %add49.i = add i32 %xor39.i, %xor48.i
  %conv50.i = zext nneg i32 %shr.i405 to i64
  %mul51.i = mul nuw nsw i64 %conv50.i, 37
  %shr52.i = lshr i64 %mul51.i, 16
  %conv53.i = trunc nuw nsw i64 %shr52.i to i32
  %conv54.i = zext i32 %xor.i to i64
  %mul55.i = mul nuw nsw i64 %conv54.i, 41
  %shr56.i = lshr i64 %mul55.i, 16
  %conv57.i = trunc nuw nsw i64 %shr56.i to i32
  %add58.i = add nuw nsw i32 %conv53.i, %conv57.i
  %xor59.i = xor i32 %add49.i, %add58.i
  %conv60.i = uitofp nneg i32 %shr.i405 to float
  %42 = bitcast float %conv60.i to i32
  %add64.i = add nuw i32 %28, %42
  %add65.i = add i32 %xor59.i, %add64.i
  %arrayidx14 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 16
  store i32 %add65.i, ptr %arrayidx14, align 4, !tbaa !7
  br i1 %or.cond.i, label %if.then.i478, label %_Z6all_ofIjjEjjj.exit

if.then.i478:                                     ; preds = %_Z6all_ofIijEjjj.exit
  %div.i479 = udiv i32 %shr.i405, %xor.i
  %mul9.i480 = mul i32 %div.i479, 11
  %rem10.i481 = urem i32 %shr.i405, %xor.i
  %mul11.i482 = mul i32 %rem10.i481, 13
  %43 = xor i32 %mul9.i480, %mul11.i482
  %xor13.i483 = xor i32 %43, %xor7.i
  br label %_Z6all_ofIjjEjjj.exit

_Z6all_ofIjjEjjj.exit:                            ; preds = %_Z6all_ofIijEjjj.exit, %if.then.i478
  %sum.0.i431 = phi i32 [ %xor13.i483, %if.then.i478 ], [ %xor7.i, %_Z6all_ofIijEjjj.exit ]
  %add21.i438 = add i32 %sum.0.i431, %xor20.i
  %conv23.i440 = zext i1 %cmp31.i to i32
  %cmp24.not.i441 = icmp ugt i32 %shr.i405, %xor.i
  %shl26.i442 = select i1 %cmp24.not.i441, i32 0, i32 2
  %44 = or disjoint i32 %shl29.i, %shl37.i
  %or30.i448 = or disjoint i32 %44, %shl26.i442
  %or34.i449 = or disjoint i32 %or30.i448, %conv23.i440
  %or38.i450 = or disjoint i32 %or34.i449, %shl33.i
  %xor39.i451 = xor i32 %add21.i438, %or38.i450
  %cond.i452 = tail call i32 @llvm.umin.i32(i32 %shr.i405, i32 %xor.i)
  %45 = xor i32 %mul41.i, %cond.i452
  %xor45.i458 = xor i32 %45, %mul44.i
  %xor48.i461 = xor i32 %xor45.i458, %mul47.i
  %add49.i462 = add i32 %xor39.i451, %xor48.i461
  %xor59.i472 = xor i32 %add49.i462, %add58.i
  %add65.i477 = add i32 %xor59.i472, %add64.i
  %arrayidx16 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 20
  store i32 %add65.i477, ptr %arrayidx16, align 4, !tbaa !7
  %cmp.not.i = icmp eq i32 %2, %shl.i187
  br i1 %cmp.not.i, label %_Z6all_ofIxyEjjj.exit, label %if.then.i493

if.then.i493:                                     ; preds = %_Z6all_ofIjjEjjj.exit
  %div.i494 = udiv i32 %shr.i405, %xor.i
  %mul15.i = mul i32 %div.i494, 11
  %rem16.i = urem i32 %shr.i405, %xor.i
  %mul18.i = mul i32 %rem16.i, 13
  %46 = xor i32 %mul15.i, %mul18.i
  %xor20.i495 = xor i32 %46, %xor7.i
  br label %_Z6all_ofIxyEjjj.exit

_Z6all_ofIxyEjjj.exit:                            ; preds = %_Z6all_ofIjjEjjj.exit, %if.then.i493
  %sum.0.i496 = phi i32 [ %xor20.i495, %if.then.i493 ], [ %xor7.i, %_Z6all_ofIjjEjjj.exit ]
  %47 = and i32 %2, 63
  %sh_prom.i499 = zext nneg i32 %47 to i64
  %shl21.i = shl i64 %conv50.i, %sh_prom.i499
  %conv22.i = trunc i64 %shl21.i to i32
  %shr24.i = lshr i64 %conv50.i, %sh_prom.i499
  %conv25.i = trunc nuw nsw i64 %shr24.i to i32
  %mul26.i = mul i32 %conv25.i, 17
  %xor27.i = xor i32 %mul26.i, %conv22.i
  %mul31.i = mul i32 %conv25.i, 19
  %xor32.i = xor i32 %xor27.i, %mul31.i
  %add33.i = add i32 %sum.0.i496, %xor32.i
  %or.i500 = or disjoint i32 %shl37.i, %conv23.i440
  %or42.i = or disjoint i32 %or.i500, %shl26.i442
  %or46.i = or disjoint i32 %or42.i, %shl29.i
  %or50.i = or disjoint i32 %or46.i, %shl33.i
  %xor51.i501 = xor i32 %add33.i, %or50.i
  %add65.i504 = add i32 %xor51.i501, %xor48.i461
  %xor73.i = xor i32 %add65.i504, %add58.i
  %and75.i = and i64 %conv54.i, 32767
  %conv76.i = uitofp nneg i64 %and75.i to float
  %48 = bitcast float %conv76.i to i32
  %add78.i = add nuw i32 %48, %42
  %add79.i = add i32 %xor73.i, %add78.i
  %arrayidx18 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 24
  store i32 %add79.i, ptr %arrayidx18, align 4, !tbaa !7
  br i1 %cmp.not.i, label %_Z6all_ofIyyEjjj.exit, label %if.then.i518

if.then.i518:                                     ; preds = %_Z6all_ofIxyEjjj.exit
  %shr.i405.frozen591 = freeze i32 %shr.i405
  %xor.i.frozen592 = freeze i32 %xor.i
  %div.i519 = udiv i32 %shr.i405.frozen591, %xor.i.frozen592
  %mul15.i520 = mul i32 %div.i519, 11
  %49 = mul i32 %div.i519, %xor.i.frozen592
  %rem16.i521.decomposed = sub i32 %shr.i405.frozen591, %49
  %mul18.i522 = mul i32 %rem16.i521.decomposed, 13
  %50 = xor i32 %mul15.i520, %mul18.i522
  %xor20.i523 = xor i32 %50, %xor7.i
  br label %_Z6all_ofIyyEjjj.exit

_Z6all_ofIyyEjjj.exit:                            ; preds = %_Z6all_ofIxyEjjj.exit, %if.then.i518
  %sum.0.i524 = phi i32 [ %xor20.i523, %if.then.i518 ], [ %xor7.i, %_Z6all_ofIxyEjjj.exit ]
  %add33.i536 = add i32 %sum.0.i524, %xor32.i
  %xor51.i549 = xor i32 %add33.i536, %or38.i450
  %add65.i560 = add i32 %xor51.i549, %xor48.i461
  %xor73.i568 = xor i32 %add65.i560, %add58.i
  %add79.i573 = add i32 %xor73.i568, %add78.i
  %arrayidx20 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 28
  store i32 %add79.i573, ptr %arrayidx20, align 4, !tbaa !7
  %51 = tail call noundef range(i32 0, 33) i32 @llvm.ctpop.i32(i32 %1)
  %52 = tail call noundef range(i32 0, 33) i32 @llvm.ctlz.i32(i32 %2, i1 false)
  %shl = shl nuw nsw i32 %52, 8
  %or = or disjoint i32 %shl, %51
  %53 = tail call range(i32 0, 33) i32 @llvm.cttz.i32(i32 %1, i1 true)
  %iszero.i = icmp eq i32 %1, 0
  %54 = shl nuw nsw i32 %53, 16
  %55 = add nuw nsw i32 %54, 65536
  %shl24 = select i1 %iszero.i, i32 0, i32 %55
  %or25 = or disjoint i32 %or, %shl24
  %arrayidx26 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 32
  store i32 %or25, ptr %arrayidx26, align 4, !tbaa !7
  %56 = tail call noundef i32 @llvm.bitreverse.i32(i32 %1)
  %57 = tail call noundef i32 @llvm.nvvm.prmt(i32 %1, i32 %2, i32 14101)
  %xor = xor i32 %57, %56
  %arrayidx29 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 36
  store i32 %xor, ptr %arrayidx29, align 4, !tbaa !7
  %conv.i = sext i32 %1 to i64
  %conv1.i = sext i32 %2 to i64
  %mul.i = mul nsw i64 %conv1.i, %conv.i
  %conv.i170 = zext i32 %1 to i64
  %conv1.i171 = zext i32 %2 to i64
  %mul.i172 = mul nuw i64 %conv1.i171, %conv.i170
  %shr.i577 = xor i64 %mul.i, %mul.i172
  %xor32576 = lshr i64 %shr.i577, 32
  %xor32 = trunc nuw i64 %xor32576 to i32
  %arrayidx33 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 40
  store i32 %xor32, ptr %arrayidx33, align 4, !tbaa !7
  %shl.i = shl nuw i64 %conv1.i171, 32
  %or.i = or disjoint i64 %shl.i, %conv.i170
  %and.i = and i32 %1, 31
  %sh_prom.i = zext nneg i32 %and.i to i64
  %shl2.i = shl i64 %or.i, %sh_prom.i
  %shr.i177 = lshr i64 %shl2.i, 32
  %sh_prom.i182 = zext nneg i32 %37 to i64
  %shr.i183 = lshr i64 %or.i, %sh_prom.i182
  %xor36578 = xor i64 %shr.i177, %shr.i183
  %xor36 = trunc i64 %xor36578 to i32
  %arrayidx37 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 44
  store i32 %xor36, ptr %arrayidx37, align 4, !tbaa !7
  %cond.i574 = tail call noundef i32 @llvm.smin.i32(i32 %2, i32 %1)
  %cond.i575 = tail call noundef i32 @llvm.umax.i32(i32 %1, i32 %2)
  %xor40 = xor i32 %cond.i574, %cond.i575
  %cmp = icmp ugt i32 %1, %2
  %cond = select i1 %cmp, i32 85, i32 170
  %xor41 = xor i32 %xor40, %cond
  %arrayidx42 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 48
  store i32 %xor41, ptr %arrayidx42, align 4, !tbaa !7
  %or45 = tail call i64 @llvm.fshl.i64(i64 %or.i, i64 %or.i, i64 32)
  %and46 = and i32 %1, 63
  %sh_prom = zext nneg i32 %and46 to i64
  %shr = lshr i64 %or45, %sh_prom
  %shl50 = shl i64 %or45, %sh_prom.i182
  %shr51 = lshr i64 %shl50, 32
  %xor53167 = xor i64 %shr51, %shr
  %or54 = or i32 %2, 1
  %conv55 = zext i32 %or54 to i64
  %div = udiv i64 %or45, %conv55
  %xor57168 = xor i64 %xor53167, %div
  %xor57 = trunc i64 %xor57168 to i32
  %arrayidx58 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 52
  store i32 %xor57, ptr %arrayidx58, align 4, !tbaa !7
  %58 = trunc i32 %1 to i1
  %conv65581 = xor i32 %2, %1
  %59 = lshr i32 %1, 1
  %xor66582 = select i1 %58, i32 %59, i32 0
  %conv71.in = or i32 %conv65581, %xor66582
  %tobool73 = trunc i32 %conv71.in to i1
  %shr62.1 = lshr i32 %2, 1
  %conv65.1583 = xor i32 %shr62.1, %conv71.in
  %60 = lshr i32 %1, 2
  %xor66.1584 = select i1 %tobool73, i32 %60, i32 0
  %conv71.1.in = or i32 %conv65.1583, %xor66.1584
  %tobool73.1 = trunc i32 %conv71.1.in to i1
  %shr62.2 = lshr i32 %2, 2
  %conv65.2585 = xor i32 %shr62.2, %conv71.1.in
  %61 = lshr i32 %1, 3
  %xor66.2586 = select i1 %tobool73.1, i32 %61, i32 0
  %conv71.2.in = or i32 %conv65.2585, %xor66.2586
  %tobool73.2 = trunc i32 %conv71.2.in to i1
  %shr62.3 = lshr i32 %2, 3
  %conv65.3587 = xor i32 %shr62.3, %conv71.2.in
  %62 = lshr i32 %1, 4
  %xor66.3588 = select i1 %tobool73.2, i32 %62, i32 0
  %conv71.3.in = or i32 %conv65.3587, %xor66.3588
  %tobool73.3 = trunc i32 %conv71.3.in to i1
  %shr62.4 = lshr i32 %2, 4
  %conv65.4589 = xor i32 %shr62.4, %conv71.3.in
  %63 = lshr i32 %1, 5
  %xor66.4590 = select i1 %tobool73.3, i32 %63, i32 0
  %conv71.4.in = or i32 %conv65.4589, %xor66.4590
  %conv71.4 = and i32 %conv71.4.in, 1
  %tobool73.4.not = icmp eq i32 %conv71.4, 0
  %. = select i1 %tobool73.4.not, i32 %2, i32 %1
  %arrayidx80 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 56
  store i32 %., ptr %arrayidx80, align 4, !tbaa !7
  %or83 = tail call i32 @llvm.fshl.i32(i32 %1, i32 %1, i32 9)
  %shl84 = shl i32 %1, 3
  %conv86 = lshr i32 %2, 13
  %shr87 = and i32 %conv86, 7
  %shl84.masked = and i32 %shl84, 65528
  %conv90 = add i32 %shl84.masked, %or83
  %add91 = add i32 %conv90, %shr87
  %arrayidx92 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 60
  store i32 %add91, ptr %arrayidx92, align 4, !tbaa !7
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.ctpop.i32(i32) #2

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.ctlz.i32(i32, i1 immarg) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.cttz.i32(i32, i1 immarg) #1

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.bitreverse.i32(i32) #2

; Function Attrs: mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.nvvm.prmt(i32, i32, i32) #2

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.fshl.i32(i32, i32, i32) #3

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smin.i32(i32, i32) #3

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.umin.i32(i32, i32) #3

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.umax.i32(i32, i32) #3

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.fshl.i64(i64, i64, i64) #3

attributes #0 = { mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: readwrite) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #3 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.module.flags = !{!0}
!llvm.ident = !{!1}
!llvm.errno.tbaa = !{!2}

!0 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!1 = !{!"clang version 23.1.0 (https://github.com/emscripten-forge/recipes 45d36c0f0278f80f0dc674dd1dc55770c59c0682)"}
!2 = !{!3, !4, i64 0}
!3 = !{!"__libc_errno", !4, i64 0}
!4 = !{!"int", !5, i64 0}
!5 = !{!"omnipotent char", !6, i64 0}
!6 = !{!"Simple C++ TBAA"}
!7 = !{!4, !4, i64 0}
